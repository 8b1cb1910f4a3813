import { loadAccount } from '../../accounts/directory/load-directory.ts';
import {
  type Account,
  type AccountKey,
  accessOf,
  type ProfileAccess,
  profileAccess,
} from '../../domain/account.ts';
import type { Environment } from '../../domain/account-events.ts';
import { formatDateTime } from '../../domain/values/date-time.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { type RefusalCode, refusals } from '../../pull/answers.ts';

/** What a key could read at a given time. */
export interface KeyAccess {
  readonly key: string;
  readonly can_read: boolean;
  /** Why it could not; `null` if it could. */
  readonly reason: string | null;
  /** True if the key showed drivers' mobile numbers. */
  readonly mobile_number: boolean;
}

/** Who could read an account's transactions at a given time, by access checks 3 to 5. */
export interface Access {
  /** Why nobody could; `null` if the account was open. */
  readonly noAccess: NoAccess | null;
  /** The keys that the account had; `null` if it can't be read. */
  readonly keys: readonly KeyAccess[] | null;
}

export async function accessAt(
  store: Pick<EventStore, 'readStream'>,
  accountId: number,
  { atMs, environment }: { readonly atMs: number; readonly environment: Environment },
): Promise<Access> {
  const entry = await loadAccount(store, accountId, { untilMs: atMs });
  if (entry === undefined) return { noAccess: { reason: 'the account was not open' }, keys: [] };
  const refused = noAccess(entry.account, atMs);
  if (entry.account === undefined) return { noAccess: refused, keys: null };
  const keys = [...entry.account.keys.values()].map((key) => {
    const reason = keyRefusal(key, environment) ?? refused?.reason ?? null;
    return { key: key.prefix, can_read: reason === null, reason, mobile_number: key.driverMobile };
  });
  return { noAccess: refused, keys };
}

function keyRefusal({ environment, active }: AccountKey, served: Environment): string | undefined {
  if (environment !== served) return `the key belongs to ${environment}`;
  return active ? undefined : 'the key was switched off';
}

/** Why requests of an account are refused. */
export interface NoAccess {
  readonly reason: string;
  /** The answer, and since when if that is known. Missing for an account that was never opened, since it has no key. */
  readonly answered?:
    | { readonly status: number; readonly code: RefusalCode; readonly since: string | null }
    | undefined;
}

/** Judges by access checks 4 and 5, and by check 3 for a closed account, whose keys are off. `null` if all pass. */
export function noAccess(account: Account | undefined, nowMs: number): NoAccess | null {
  const access = accessOf(account, nowMs);
  if (access.open) return null;
  const { code, sinceMs } = account?.closed
    ? ({ code: 'INVALID_API_KEY', ...account.closed } as const)
    : access;
  const since = sinceMs === undefined ? null : formatDateTime(sinceMs);
  return { reason: reasonOf(account, nowMs), answered: { status: refusals[code].status, code, since } };
}

/** Says if requests of an account are answered, until when, or why not. */
export function accessAnswer(account: Account | undefined, nowMs: number) {
  const access = accessOf(account, nowMs);
  const refused = noAccess(account, nowMs);
  return {
    access: access.open,
    access_until: access.open && access.endsAtMs !== null ? formatDateTime(access.endsAtMs) : null,
    no_access_reason: refused?.reason ?? null,
    answered: refused?.answered ?? null,
  };
}

function reasonOf(account: Account | undefined, nowMs: number): string {
  if (account === undefined) return 'the account can not be read';
  if (account.integration.enabled) return profileReason(profileAccess(account, nowMs));
  return account.closed === null ? 'the integration is off' : `closed: ${account.closed.reason}`;
}

/** Says until when a charging profile gives access, or why none does. */
function profileReason(profile: ProfileAccess): string {
  if (profile.active)
    return profile.endsAtMs === null ? 'open-ended' : `until ${formatDateTime(profile.endsAtMs)}`;
  const { sinceMs, startsAtMs } = profile;
  if (startsAtMs !== undefined) return `its charging profile begins at ${formatDateTime(startsAtMs)}`;
  return sinceMs === undefined
    ? 'it has no charging profile'
    : `its charging profile ended at ${formatDateTime(sinceMs)}`;
}
