import type { AccountDetails } from '../../accounts/rows/rows-of.ts';
import { accessOf, type ProfileAccess, profileAccess } from '../../domain/account.ts';
import { dateTimeOrNull, formatDateTime } from '../../domain/values/date-time.ts';
import { type RefusalCode, refusals } from '../../pull/answers.ts';

/** The reason why requests of an account are refused. */
export interface NoAccess {
  readonly reason: string;
  /** The answer, and since when if that is known. Missing for an account that was never opened, since it has no key. */
  readonly answered?:
    | { readonly status: number; readonly code: RefusalCode; readonly since: string | null }
    | undefined;
}

/** Judges by access checks 4 and 5, and by check 3 for a closed account, whose keys are off. `null` if all pass. */
export function noAccess(account: AccountDetails | undefined, nowMs: number): NoAccess | null {
  const access = accessOf(account, nowMs);
  if (access.open) return null;
  const { code, sinceMs } = account?.closed
    ? ({ code: 'INVALID_API_KEY', ...account.closed } as const)
    : access;
  const since = dateTimeOrNull(sinceMs);
  return { reason: accessReason(account, nowMs), answered: { status: refusals[code].status, code, since } };
}

/** Says if requests of an account are answered, until when, or why not. */
export function accessAnswer(account: AccountDetails | undefined, nowMs: number) {
  const access = accessOf(account, nowMs);
  const refused = noAccess(account, nowMs);
  return {
    access: access.open,
    access_until: access.open && access.endsAtMs !== null ? formatDateTime(access.endsAtMs) : null,
    no_access_reason: refused?.reason ?? null,
    answered: refused?.answered ?? null,
  };
}

function accessReason(account: AccountDetails | undefined, nowMs: number): string {
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
