import type { Rest } from '../../base/pause.ts';
import { TRANSACTION_STREAMS } from '../../domain/transaction-events.ts';
import { recordedAtMs } from '../../event-store/codec.ts';
import { damageOf } from '../../event-store/damage.ts';
import type { Damage, EventStore } from '../../event-store/event-store.ts';
import { readToEnd } from '../../event-store/reads.ts';
import type { Position, RecordedEvent } from '../../event-store/recorded-event.ts';
import { projectEvent, type ViewChange } from '../../pull/record/project-event.ts';

/** Some milliseconds of work. What a small block creates is dropped before the garbage collector copies it. */
const BLOCK = 100;
/** Blocks that are judged beside each other: a round trip to the stores is waited for once for all of them. */
const AHEAD = 8;

/** An event with what it does to the view, which the deliveries are decided by too. */
export interface ProjectedEvent {
  readonly event: RecordedEvent;
  readonly projected: ViewChange;
}

/** Judges the transactions' events block by block. It gets them in the order of the log, some before others are done. */
export interface Judge {
  judge(block: readonly ProjectedEvent[]): Promise<void>;
}

export interface ReadLogOptions {
  readonly store: EventStore;
  /** Where to start; 0 for the beginning. */
  readonly after?: Position | undefined;
  /** Events that are judged together, at most. */
  readonly blockSize?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly rest?: Rest | undefined;
  readonly onProgress?: ((events: number) => void) | undefined;
}

/**
 * Reads the log of transactions once for all judges, in short steps with a turn of the event loop between them; or with a rest,
 * and then one block after the other. Returns which events can't be read. Rejects with the signal's reason when it aborts.
 */
export async function readLog(
  judges: readonly Judge[],
  { store, after = 0, blockSize = BLOCK, signal, rest, onProgress }: ReadLogOptions,
): Promise<readonly Damage[]> {
  const damage: Damage[] = [];
  const judging: Promise<void>[] = [];
  const ahead = rest === undefined ? (AHEAD - 1) * judges.length : 0;
  let events = 0;
  const log = { prefixes: [TRANSACTION_STREAMS], after, batchSize: blockSize, signal };
  try {
    for await (const batch of readToEnd(store, log)) {
      const block = batch.events.map((event) => ({ event, projected: projectEvent(event) }));
      for (const judge of block.length > 0 ? judges : []) {
        const judged = judge.judge(block);
        judged.catch(() => undefined); // it may fail while an earlier one is waited for, and is waited for then
        judging.push(judged);
      }
      for (const { event } of block) {
        const found = damageOf(event);
        if (found !== undefined) damage.push(found);
      }
      events += block.length;
      onProgress?.(events);
      while (judging.length > ahead) await judging.shift();
      await rest?.();
    }
    for (const judged of judging) await judged;
  } finally {
    await Promise.allSettled(judging);
  }
  signal?.throwIfAborted();
  return damage;
}

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
