import type { Rest } from '../../base/pause.ts';
import { TRANSACTION_STREAMS } from '../../domain/transaction-events.ts';
import { occurredAtMs } from '../../event-store/codec.ts';
import { damageOf } from '../../event-store/damage.ts';
import type { Damage, EventStore } from '../../event-store/event-store.ts';
import { readToEnd } from '../../event-store/reads.ts';
import type { Position, RecordedEvent } from '../../event-store/recorded-event.ts';
import { type Projected, projectEvent } from '../../records/project-event.ts';

/** The events of a block take some milliseconds. The garbage of a small block is dropped before it would be copied. */
const BLOCK = 100;
/** How many blocks are judged at the same time, so that they share the wait for a round trip to the stores. */
const AHEAD = 8;

/** An event and what it does to the view. Deliveries are decided by the same. */
export interface ProjectedEvent {
  readonly event: RecordedEvent;
  readonly projected: Projected;
}

export interface ReadLogOptions {
  readonly store: EventStore;
  /** The position after which reading starts; 0 for the beginning. */
  readonly after?: Position | undefined;
  /** The most events that are judged together. */
  readonly blockSize?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly rest?: Rest | undefined;
  readonly onProgress?: ((events: number) => void) | undefined;
}

/**
 * Reads the log once, in short steps, and hands the transactions' events to `judge`, in order, and later ones before it is done
 * with earlier ones. With `rest` it judges one block after the other and rests in between. Returns the damaged events of all
 * streams. Rejects with the signal's reason when that aborts.
 */
export async function readLog(
  { store, after = 0, blockSize = BLOCK, signal, rest, onProgress }: ReadLogOptions,
  judge: (block: readonly ProjectedEvent[]) => Promise<void>,
): Promise<readonly Damage[]> {
  const damage: Damage[] = [];
  const judging: Promise<void>[] = [];
  const ahead = rest === undefined ? AHEAD - 1 : 0;
  let events = 0;
  const log = { prefixes: [], after, batchSize: blockSize, signal };
  try {
    for await (const batch of readToEnd(store, log)) {
      const block = batch.events
        .filter(({ stream }) => stream.startsWith(TRANSACTION_STREAMS))
        .map((event) => ({ event, projected: projectEvent(event) }));
      const judged = judge(block);
      judged.catch(() => undefined); // it is awaited later; until then a failure must not count as unhandled
      judging.push(judged);
      for (const event of batch.events) {
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

/** The transactions to verify: all of them unless it is limited. */
export interface VerifyScope {
  readonly accountId?: number | undefined;
  /** When an event of the transaction was recorded, in milliseconds; both ends are included. */
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

/** Reads the time only if it matters, because for a million events that takes a second. */
function isRecordedInRange(event: RecordedEvent, scope: VerifyScope): boolean {
  if (scope.sinceMs === undefined && scope.untilMs === undefined) return true;
  return isInRange(occurredAtMs(event), scope);
}
