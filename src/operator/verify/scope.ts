import { recordedAtMs } from '../../event-store/codec.ts';
import type { RecordedEvent } from '../../event-store/event-store.ts';

/** What was recorded a moment ago may not be stored yet: it gets this long before it counts as missing. */
export const SETTLE_MS = 1_000;

/** Which transactions are verified; all of them without limits. */
export interface VerifyScope {
  readonly accountId?: number | undefined;
  /** When an event of the transaction was recorded, milliseconds; both inclusive. */
  readonly sinceMs?: number | undefined;
  readonly untilMs?: number | undefined;
}

export function isInScope(event: RecordedEvent, scope: VerifyScope): boolean {
  return isOfAccount(event, scope) && isRecordedInRange(event, scope);
}

export function isOfAccount({ data }: RecordedEvent, { accountId }: VerifyScope): boolean {
  if (accountId === undefined) return true;
  return (data as { readonly account_id?: unknown } | null)?.account_id === accountId;
}

export function isInRange(atMs: number, { sinceMs = -Infinity, untilMs = Infinity }: VerifyScope): boolean {
  return sinceMs <= atMs && atMs <= untilMs;
}

/** The time is read only where it matters: of a million events that takes a second. */
function isRecordedInRange(event: RecordedEvent, scope: VerifyScope): boolean {
  if (scope.sinceMs === undefined && scope.untilMs === undefined) return true;
  return isInRange(recordedAtMs(event), scope);
}
