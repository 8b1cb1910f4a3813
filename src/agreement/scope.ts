import { parseDateTime } from '../domain/values/date-time.ts';
import { recordedAt } from '../event-store/codec.ts';
import type { RecordedEvent } from '../event-store/event-store.ts';

/** What was recorded a moment ago may not be stored yet: it gets this long before it counts as missing. */
export const SETTLE_MS = 1_000;

/** Which transactions are verified; all of them without limits. */
export interface VerifyScope {
  readonly accountId?: number | undefined;
  /** When the transaction was recorded, milliseconds; both inclusive. */
  readonly sinceMs?: number | undefined;
  readonly untilMs?: number | undefined;
}

export function isInScope(event: RecordedEvent, scope: VerifyScope): boolean {
  const named = (event.data as { readonly account_id?: unknown } | null)?.account_id;
  if (scope.accountId !== undefined && named !== scope.accountId) return false;
  return isInRange(recordedAtMs(event), scope);
}

export function isInRange(atMs: number, { sinceMs = -Infinity, untilMs = Infinity }: VerifyScope): boolean {
  return sinceMs <= atMs && atMs <= untilMs;
}

/** By the metadata, which a copied event keeps. */
export function recordedAtMs(event: RecordedEvent): number {
  return parseDateTime(recordedAt(event)) ?? event.recordedAtMs;
}
