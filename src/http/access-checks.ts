import type { Caller } from '../accounts/caller.ts';
import { type Account, type AccountKey, activeProfile } from '../domain/account.ts';
import type { RefusalCode } from './answers.ts';

export interface Access {
  readonly account: Account;
  readonly key: AccountKey;
  /** The end of the profile that is current now; `null` when it is open-ended. */
  readonly endsAtMs: number | null;
}

/**
 * Checks 3, 4 and 5 of the acceptance order, in that order, at one moment. A key that proves itself but whose
 * account can't be read is refused as unavailable: nothing that follows could be trusted.
 */
export function checkAccess(caller: Caller | undefined, nowMs: number): Access | RefusalCode {
  if (caller?.known === undefined || !caller.proven || !caller.known.key.active) return 'INVALID_API_KEY';
  const { key, entry } = caller.known;
  const { account } = entry;
  if (entry.unreadable !== null || account === undefined) return 'SERVICE_UNAVAILABLE';
  if (!account.integrationEnabled) return 'API_INTEGRATION_NOT_ENABLED';
  const profile = activeProfile(account, nowMs);
  if (profile === undefined) return 'NO_ACTIVE_CHARGING_PROFILE';
  return { account, key, endsAtMs: profile.endsAtMs };
}
