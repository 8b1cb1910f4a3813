import { setImmediate as nextTurn } from 'node:timers/promises';
import { isRecordingType, transactionStream } from '../../domain/transaction-events.ts';
import { sameJson } from '../../domain/values/same-json.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { readInParts } from '../../event-store/reads.ts';
import type { Position } from '../../event-store/recorded-event.ts';
import type { LaneStreak, StoredDelivery } from '../../push/queue/delivery.ts';
import type { DeliveryQueue } from '../../push/queue/delivery-queue.ts';
import { healthy } from '../../push/queue/failure-streak.ts';

/** Of a delivery whose transaction was erased: before everything; it is never attempted again. */
const NOWHERE: Position = 0;

/** Before every transaction. */
const START = -1;
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
  readonly onProgress: (step: 'deliveries copied', done: number) => void;
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
  const { source, target, targetStore, onProgress } = options;
  for await (const withdrawn of withdrawals(source)) await target.store({ withdrawn });
  await copyStreaks(options);
  const faults: string[] = [];
  let equal = 0;
  let after = START;
  const compare = (wanted: readonly StoredDelivery[], found: ReadonlyMap<string, StoredDelivery>): void => {
    const ids = new Set(wanted.map(({ id }) => id));
    for (const delivery of wanted) {
      const copy = found.get(delivery.id);
      if (sameJson(delivery, copy)) equal++;
      else faults.push(`delivery ${delivery.id} ${copy === undefined ? 'is not in the target' : 'differs'}`);
    }
    for (const id of found.keys()) if (!ids.has(id)) faults.push(`delivery ${id} is in the target only`);
  };
  for await (const deliveries of storedDeliveries(source)) {
    const wanted = await relocated(deliveries, targetStore);
    const range = { after, upTo: wanted.at(-1)?.transactionId };
    let found = await storedIn(target, range);
    const differing = wanted.filter((delivery) => !sameJson(delivery, found.get(delivery.id)));
    if (differing.length > 0) {
      await target.store({ deliveries: differing });
      found = await storedIn(target, range);
    }
    compare(wanted, found);
    after = range.upTo ?? after;
    onProgress('deliveries copied', equal);
  }
  compare([], await storedIn(target, { after, upTo: undefined }));
  return {
    deliveries: equal,
    faults: [...faults, ...(await withdrawalFaults(options)), ...(await streakFaults(options))],
  };
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

/** The deliveries of the transactions after `after` and up to `upTo`; without `upTo` all that are left. */
async function storedIn(
  log: CopiedLog,
  { after, upTo }: { readonly after: number; readonly upTo: number | undefined },
): Promise<ReadonlyMap<string, StoredDelivery>> {
  const found = new Map<string, StoredDelivery>();
  for await (const batch of storedDeliveries(log, after)) {
    for (const delivery of batch) {
      if (upTo !== undefined && delivery.transactionId > upTo) return found;
      found.set(delivery.id, delivery);
    }
  }
  return found;
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

/** With those that ended since a copy that was interrupted. */
async function copyStreaks({ source, target }: DeliveryCopyOptions): Promise<void> {
  const [failing, former] = [await streaksOf(source), await streaksOf(target)];
  const ended = [...former.keys()].filter((prefix) => !failing.has(prefix));
  const streaks = [...failing.values(), ...ended.map((prefix) => ({ prefix, ...healthy() }))];
  await target.store({ streaks });
}

async function streaksOf(log: CopiedLog): Promise<ReadonlyMap<string, LaneStreak>> {
  const failing = await log.failingLanes(ALL_LANES);
  return new Map(failing.map((streak) => [streak.prefix, streak]));
}

function storedDeliveries(log: CopiedLog, after = START): AsyncGenerator<readonly StoredDelivery[]> {
  return inBatches(after, { read: (from) => log.storedAfter(from), placeOf: (last) => last.transactionId });
}

function withdrawals(log: CopiedLog): AsyncGenerator<readonly number[]> {
  return inBatches(START, { read: (from) => log.withdrawnAfter(from), placeOf: (id) => id });
}

async function* inBatches<Item, Place>(
  after: Place,
  log: {
    readonly read: (after: Place) => Promise<readonly Item[]>;
    readonly placeOf: (item: Item) => Place;
  },
): AsyncGenerator<readonly Item[]> {
  let batch = await log.read(after);
  for (let last = batch.at(-1); last !== undefined; last = batch.at(-1)) {
    yield batch;
    await nextTurn();
    batch = await log.read(log.placeOf(last));
  }
}
