import { type Account, type AccountWebhook, activeProfile } from '../domain/account.ts';
import { formatDateTime } from '../domain/values/date-time.ts';

/** Why requests of the account are refused (checks 4 and 5, or unreadable); `undefined` where they are not. */
export function noAccessReason(account: Account | undefined, nowMs: number): string | undefined {
  if (account === undefined) return 'the account can not be read';
  if (!account.integrationEnabled) return 'the integration is off';
  if (activeProfile(account, nowMs) !== undefined) return undefined;
  const profiles = [...account.profiles.values()];
  const starts = profiles.map(({ fromMs }) => fromMs).filter((fromMs) => fromMs > nowMs);
  const next = starts.sort((a, b) => a - b)[0];
  if (next !== undefined) return `its charging profile begins at ${formatDateTime(next)}`;
  const ends = profiles.map(({ toMs }) => toMs ?? 0);
  const last = ends.sort((a, b) => b - a)[0];
  return last === undefined
    ? 'it has no charging profile'
    : `its charging profile ended at ${formatDateTime(last)}`;
}

/** Why deliveries of the account are held: what its access says now, so that nothing older is stored with them. */
export function heldReason(account: Account | undefined, nowMs: number): string {
  return noAccessReason(account, nowMs) ?? 'the account has access again: it is about to be sent';
}

/** `reason` and `since` of a disabled one. */
export function webhookState(webhook: AccountWebhook | null) {
  const disabled = webhook?.disabled ?? null;
  const state = webhook === null ? 'none' : disabled === null ? 'active' : 'disabled';
  return {
    state,
    reason: disabled?.reason ?? null,
    since: disabled === null ? null : formatDateTime(disabled.sinceMs),
  } as const;
}
