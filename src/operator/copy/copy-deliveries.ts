import { setImmediate as nextTurn } from 'node:timers/promises';
import { isRecordingType, transactionStream } from '../../domain/transaction-events.ts';
import { sameJson } from '../../domain/values/same-json.ts';
import type { EventStore, Position } from '../../event-store/event-store.ts';
import { readInParts } from '../../event-store/reads.ts';
import type { DeliveryQueue, LaneStreak, StoredDelivery } from '../../push/queue/delivery-queue.ts';
import { healthy } from '../../push/queue/failure-streak.ts';

/** Of a delivery whose transaction was erased: before everything; it is never attempted again. */
const NOWHERE: Position = 0;

/** More lanes than there are keys. */
const ALL_LANES = 100_000_000;

/** A delivery log as a copy reads and writes it. */
export type CopiedLog = Pick<
  DeliveryQueue,
  'logId' | 'storedAfter' | 'withdrawnAfter' | 'failingLanes' | 'store'
>;

export interface DeliveryCopyOptions {
  readonly source: CopiedLog;
  /** Has the source's name. */
  readonly target: CopiedLog;
  /** Where the copied events are: deliveries get their positions there. */
  readonly targetStore: Pick<EventStore, 'readStreams'>;
  readonly onProgress: (step: 'deliveries compared' | 'deliveries copied', done: number) => void;
}

export interface DeliveryCopy {
  /** Deliveries that are the same in the target as in the source. */
  readonly deliveries: number;
  /** What differs, one line each. */
  readonly faults: readonly string[];
}

/**
 * Copies the delivery log and reads it back. What the target has already is not stored again, so that a copy that
 * was interrupted continues quickly.
 */
export async function copyDeliveries(options: DeliveryCopyOptions): Promise<DeliveryCopy> {
  const { source, target, onProgress } = options;
  for await (const withdrawn of withdrawals(source)) await target.store({ withdrawn });
  const [failing, former] = [await streaksOf(source), await streaksOf(target)];
  const ended = [...former.keys()].filter((prefix) => !failing.has(prefix));
  const streaks = [...failing.values(), ...ended.map((prefix) => ({ prefix, ...healthy() }))];
  await target.store({ streaks });
  let copied = 0;
  for await (const { wanted, existing } of pairs(options)) {
    const differing = wanted.filter((delivery) => !sameJson(delivery, existing.get(delivery.id)));
    if (differing.length > 0) await target.store({ deliveries: differing });
    copied += wanted.length;
    onProgress('deliveries copied', copied);
  }
  return verify(options);
}

/** The deliveries, each at the position that its transaction's event has in `store`. */
export async function relocated(
  deliveries: readonly StoredDelivery[],
  store: DeliveryCopyOptions['targetStore'],
): Promise<readonly StoredDelivery[]> {
  const ids = [...new Set(deliveries.map(({ transactionId }) => transactionId))];
  const positions = new Map<string, Position | undefined>();
  for await (const [stream, events] of readInParts(store, ids.map(transactionStream))) {
    positions.set(stream, events.find(({ type }) => isRecordingType(type))?.position);
  }
  return deliveries.map((delivery) => ({
    ...delivery,
    position: positions.get(transactionStream(delivery.transactionId)) ?? NOWHERE,
  }));
}

/** Reads one delivery log in the ranges of ids of another. Both are ordered by id. */
export class LogByRange {
  readonly #deliveries: AsyncGenerator<StoredDelivery, void>;
  #next: IteratorResult<StoredDelivery, void> | undefined;

  constructor(batches: AsyncIterable<readonly StoredDelivery[]>) {
    this.#deliveries = oneByOne(batches);
  }

  /** Those after the former range and up to this id, by id; without an id all that are left. */
  async upTo(lastId: string | undefined): Promise<ReadonlyMap<string, StoredDelivery>> {
    const found = new Map<string, StoredDelivery>();
    this.#next ??= await this.#deliveries.next();
    while (!this.#next.done && (lastId === undefined || this.#next.value.id <= lastId)) {
      found.set(this.#next.value.id, this.#next.value);
      this.#next = await this.#deliveries.next();
    }
    return found;
  }

  async close(): Promise<void> {
    await this.#deliveries.return();
  }
}

async function* oneByOne<T>(batches: AsyncIterable<readonly T[]>): AsyncGenerator<T, void> {
  for await (const batch of batches) yield* batch;
}

/** What the target should hold, batch by batch, and what it does hold of the same range of ids. */
async function* pairs({ source, target, targetStore }: DeliveryCopyOptions): AsyncGenerator<{
  readonly wanted: readonly StoredDelivery[];
  readonly existing: ReadonlyMap<string, StoredDelivery>;
}> {
  const inTarget = new LogByRange(storedDeliveries(target));
  try {
    for await (const deliveries of storedDeliveries(source)) {
      const wanted = await relocated(deliveries, targetStore);
      yield { wanted, existing: await inTarget.upTo(wanted.at(-1)?.id) };
    }
    yield { wanted: [], existing: await inTarget.upTo(undefined) };
  } finally {
    await inTarget.close();
  }
}

async function verify(options: DeliveryCopyOptions): Promise<DeliveryCopy> {
  const faults: string[] = [];
  let equal = 0;
  for await (const { wanted, existing } of pairs(options)) {
    const ids = new Set(wanted.map(({ id }) => id));
    for (const delivery of wanted) {
      const found = existing.get(delivery.id);
      if (sameJson(delivery, found)) equal++;
      else faults.push(`delivery ${delivery.id} ${found === undefined ? 'is not in the target' : 'differs'}`);
    }
    for (const id of existing.keys()) if (!ids.has(id)) faults.push(`delivery ${id} is in the target only`);
    options.onProgress('deliveries compared', equal);
  }
  return {
    deliveries: equal,
    faults: [...faults, ...(await withdrawalFaults(options)), ...(await streakFaults(options))],
  };
}

async function withdrawalFaults({ source, target }: DeliveryCopyOptions): Promise<string[]> {
  const wanted = new Set<number>();
  for await (const ids of withdrawals(source)) for (const id of ids) wanted.add(id);
  const faults: string[] = [];
  for await (const ids of withdrawals(target)) {
    for (const id of ids) {
      if (!wanted.delete(id)) faults.push(`the withdrawal of transaction ${id} is in the target only`);
    }
  }
  return [...faults, ...[...wanted].map((id) => `the withdrawal of transaction ${id} is not in the target`)];
}

async function streakFaults({ source, target }: DeliveryCopyOptions): Promise<string[]> {
  const [wanted, existing] = [await streaksOf(source), await streaksOf(target)];
  const prefixes = new Set([...wanted.keys(), ...existing.keys()]);
  return [...prefixes]
    .filter((prefix) => !sameJson(wanted.get(prefix), existing.get(prefix)))
    .map((prefix) => `the failure streak of key ${prefix} differs`);
}

async function streaksOf(log: CopiedLog): Promise<ReadonlyMap<string, LaneStreak>> {
  const failing = await log.failingLanes(ALL_LANES);
  return new Map(failing.map((streak) => [streak.prefix, streak]));
}

async function* storedDeliveries(log: CopiedLog): AsyncGenerator<readonly StoredDelivery[]> {
  for (let after = ''; ; ) {
    const batch = await log.storedAfter(after);
    const last = batch.at(-1);
    if (last === undefined) return;
    yield batch;
    after = last.id;
    await nextTurn();
  }
}

async function* withdrawals(log: CopiedLog): AsyncGenerator<readonly number[]> {
  for (let after = -1; ; ) {
    const batch = await log.withdrawnAfter(after);
    const last = batch.at(-1);
    if (last === undefined) return;
    yield batch;
    after = last;
    await nextTurn();
  }
}
