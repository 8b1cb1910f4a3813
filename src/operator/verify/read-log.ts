import { TRANSACTION_STREAMS } from '../../domain/transaction-events.ts';
import { recordedAtMs } from '../../event-store/codec.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { readToEnd } from '../../event-store/reads.ts';
import type { Position, RecordedEvent } from '../../event-store/recorded-event.ts';
import { projectEvent, type ViewChange } from '../../pull/record/project-event.ts';

const BLOCK = 500;

/** An event with what it does to the view, which the deliveries are decided by too. */
export interface ProjectedEvent {
  readonly event: RecordedEvent;
  readonly projected: ViewChange;
}

/** Judges the transactions' events block by block, in the order of the log. */
export interface Judge {
  judge(block: readonly ProjectedEvent[]): Promise<void>;
}

export interface ReadLogOptions {
  readonly store: EventStore;
  /** Where to start; 0 for the beginning. */
  readonly after?: Position | undefined;
  /** The last position to read; the end of the log unless given. */
  readonly upTo?: Position | undefined;
  /** Events that are judged together, at most. */
  readonly blockSize?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((events: number) => void) | undefined;
}

/** Reads the log of transactions once for all judges. Rejects with the signal's reason when it aborts. */
export async function readLog(
  judges: readonly Judge[],
  { store, after = 0, upTo = Infinity, blockSize = BLOCK, signal, onProgress }: ReadLogOptions,
): Promise<void> {
  let events = 0;
  const log = { prefixes: [TRANSACTION_STREAMS], after, batchSize: blockSize, signal };
  for await (const batch of readToEnd(store, log)) {
    const wanted = batch.events.filter(({ position }) => position <= upTo);
    const block = wanted.map((event) => ({ event, projected: projectEvent(event) }));
    if (block.length > 0) for (const judge of judges) await judge.judge(block);
    events += block.length;
    onProgress?.(events);
    if (batch.position >= upTo) break;
  }
  signal?.throwIfAborted();
}

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
