import type { Rest } from '../../base/pause.ts';
import { world } from '../../base/world.ts';
import { transactionIdOf, transactionStream } from '../../domain/transaction-events.ts';
import { batchesOf } from '../../event-store/batch-bytes.ts';
import { DamagedStreams } from '../../event-store/damage.ts';
import type { Damage, EventStore } from '../../event-store/event-store.ts';
import { withoutParked } from '../../pull/view/parked-events.ts';
import type { TransactionsView } from '../../pull/view/transactions-view.ts';
import { projectEvent } from '../../records/project-event.ts';
import { IdSet } from './id-set.ts';
import {
  isInScope,
  isOfAccount,
  type ProjectedEvent,
  type ReadLogOptions,
  readLog,
  type VerifyScope,
} from './read-log.ts';

/** The number of streams that are read together. */
const PART = 200;
/** Differences are compared again after this time, since view and deliveries follow the log with a short delay. */
const SETTLE_MS = 1_000;

/** A transaction's events from the first one on. */
export interface TransactionStream {
  readonly id: number;
  readonly events: readonly ProjectedEvent[];
}

/** The knowledge that only a complete reading of the log gives. */
export interface ReadUp {
  /** The transactions of which the log had events. */
  readonly known: Pick<IdSet, 'has'>;
  readonly damaged: DamagedStreams;
}

/** One of the two stores that are compared with the events: the view, or the delivery log. */
export interface Side {
  /**
   * Reads what is stored of these transactions. The result compares it with their streams, of which it gets those that the log
   * had until then, and returns the ids of those that differ.
   */
  find(
    ids: readonly number[],
  ): Promise<(streams: readonly TransactionStream[]) => Promise<readonly number[]>>;
  /** Yields the ids of transactions of which something is stored. */
  stored(): AsyncGenerator<readonly number[]>;
  /** Judges the transactions that still differ, by whole streams, some at a time. */
  settle(parts: AsyncIterable<readonly number[]>, readUp: ReadUp): Promise<void>;
}

export interface CompareOptions extends ReadLogOptions, VerifyScope {
  readonly view: () => Pick<TransactionsView, 'parked'>;
  readonly settleMs?: number | undefined;
}

/**
 * Compares the sides with the events, in one reading of the log. Most streams are all in one block of it. The others, those that
 * differ, and those of which only a side has something are read by their ids at the end, when it is known which events are
 * damaged. What still differs is judged a moment later. Returns the damaged events.
 */
export async function compareLog(
  sides: readonly Side[],
  { view, settleMs = SETTLE_MS, ...options }: CompareOptions,
): Promise<readonly Damage[]> {
  const { store, rest = () => world.nextTurn() } = options;
  const known = new IdSet();
  const suspects = new IdSet();
  const found = await readLog(options, async (block) => {
    const streams: TransactionStream[] = [];
    for (const [stream, events] of Map.groupBy(block, ({ event }) => event.stream)) {
      const id = transactionIdOf(stream);
      if (id === undefined || !events.some(({ event }) => isOfAccount(event, options))) continue;
      known.add(id);
      if (!events.some(({ event }) => isInScope(event, options))) continue;
      if (events[0]?.event.revision === 0) streams.push({ id, events });
      else suspects.add(id);
    }
    const ids = streams.map(({ id }) => id);
    for (const differing of await compare(sides, ids, () => streams)) suspects.add(differing);
  });
  const damage = await withoutParked(found, view);
  for (const side of sides) {
    for await (const ids of side.stored()) {
      for (const id of ids) if (!known.has(id)) suspects.add(id);
      await rest();
    }
  }
  const differing = new IdSet();
  for await (const part of inParts(suspects, rest))
    for (const id of await compare(sides, part, () => wholeStreams(store, part))) differing.add(id);
  if (differing.size > 0) await world.sleep(settleMs);
  const readUp = { known, damaged: new DamagedStreams(damage) };
  for (const side of sides) await side.settle(inParts(differing, rest), readUp);
  return damage;
}

async function compare(
  sides: readonly Side[],
  ids: readonly number[],
  read: () => readonly TransactionStream[] | Promise<readonly TransactionStream[]>,
): Promise<readonly number[]> {
  if (ids.length === 0) return [];
  const comparisons = await Promise.all(sides.map((side) => side.find(ids)));
  const streams = await read();
  return (await Promise.all(comparisons.map((each) => each(streams)))).flat();
}

async function* inParts(ids: Iterable<number>, rest: Rest): AsyncGenerator<readonly number[]> {
  for (const part of batchesOf(ids, { maxItems: PART, bytesOf: () => 0 })) {
    yield part;
    await rest();
  }
}

/** Reads the streams of transactions, in the given order. */
export async function wholeStreams(
  store: Pick<EventStore, 'readStreams'>,
  ids: readonly number[],
): Promise<TransactionStream[]> {
  const histories = await store.readStreams(ids.map(transactionStream));
  return ids.map((id, at) => ({
    id,
    events: (histories[at] ?? []).map((event) => ({ event, projected: projectEvent(event) })),
  }));
}
