import type { Clock } from '../../base/clock.ts';
import { type Coordination, PROCESS_MAX_AGE_MS } from '../../base/coordination/coordination.ts';
import { FuelError } from '../../base/errors.ts';
import { OPERATIONS_STREAM } from '../../domain/operations-events.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import type { Author } from '../../event-store/new-event.ts';
import { operationsOf, recordOperations } from '../../event-store/operations.ts';
import { readToEnd } from '../../event-store/reads.ts';
import { type Position, type RecordedEvent, textOfRef } from '../../event-store/recorded-event.ts';
import { storeIdentity } from '../../event-store/store-identity.ts';
import type { DeliveryQueue } from '../../push/queue/delivery-queue.ts';
import { isLeaf } from '../../seals/leaf.ts';
import { isMark, moveInLog } from '../../service/stores/moved-store.ts';
import { beginCopy, endCopy } from '../../service/stores/unfinished-copy.ts';
import { compareLogs, type LogComparison } from './compare-logs.ts';
import { copyDeliveries, type DeliveryCopy, nameLog } from './copy-deliveries.ts';
import { copyEvents, eraseStreams, toCopied } from './copy-events.ts';

/** The source or the target of a copy. */
export interface CopyEnd {
  readonly store: EventStore;
  readonly queue: Pick<DeliveryQueue, 'logId' | 'tables'>;
  readonly coordination: Coordination;
}

export interface CopyStoreOptions {
  readonly source: CopyEnd & { readonly erasedStreams: () => Promise<readonly string[]> };
  readonly target: CopyEnd;
  readonly author: Author;
  readonly clock: Clock;
  /** Marks the source as moved. It is called again if the first call may have been interrupted. */
  readonly markMoved: () => Promise<void>;
  readonly onProgress: (progress: CopyProgress) => void;
}

export interface CopyProgress {
  readonly step: 'events compared' | 'events copied' | 'deliveries copied';
  readonly done: number;
}

export interface CopyReport {
  /** The number of events that are the same in both stores. */
  readonly events: number;
  /** The same for deliveries: the number on record if they were copied before, or `null` if the events differ. */
  readonly deliveries: number | null;
  /** True if everything was copied before. Then the events were only compared. */
  readonly copiedBefore: boolean;
  /** The differences, one line each. The copy is complete if there are none. */
  readonly faults: readonly string[];
}

/**
 * Copies a stopped store into other engines: events with their streams, revisions and ids, erasures, and the
 * delivery log with its positions in the new event store. Views, leases and the positions of subscriptions are not
 * copied but recreated there; the copied delivery log prevents a second delivery of anything.
 *
 * It can be interrupted anywhere: the next run copies everything again, which changes nothing where the target has it. Once
 * everything was read back and found equal, it records `StoreCopied` and marks the source as moved; a run after that only
 * compares. Rejects with `REFUSED` if a process is live on either side, the target is another store, or the source changes
 * during the copy, and with `STORE_MOVED` if the source was moved to another target.
 */
export async function copyStore(options: CopyStoreOptions): Promise<CopyReport> {
  const { source, target, clock } = options;
  await assertNoLiveProcess(source.coordination, 'the store that is copied');
  const storeId = await storeIdentity(source.store, clock);
  const before = (await operationsOf(target.store)).copied;
  if (before === undefined) return copyAll(options, storeId);
  await nameTarget(source.store, target.store);
  const { events, fault } = await compare(options, before.position);
  // The former run may have been interrupted right before these two steps.
  if (fault === undefined) await options.markMoved();
  await endCopy(target.coordination, storeId);
  const faults = fault === undefined ? [] : [fault];
  return { events, deliveries: before.deliveries, copiedBefore: true, faults };
}

async function copyAll(options: CopyStoreOptions, storeId: string): Promise<CopyReport> {
  const { source, target, onProgress } = options;
  const move = await moveInLog(source.store);
  if (move !== undefined)
    throw new FuelError('STORE_MOVED', `this store was moved to ${move.to.join(' and ')} at ${move.at}`);
  await assertNoLiveProcess(target.coordination, 'the target');
  await nameTarget(source.store, target.store);
  await source.queue.logId(); // a log without a name gets one
  await nameLog({ source: source.queue.tables, target: target.queue.tables });
  // This keeps a service from starting there. It comes last, so that a target that is refused stays usable.
  await beginCopy(target.coordination, storeId);
  await eraseStreams(await source.erasedStreams(), target.store);
  const sourceEnd = await source.store.head();
  let copied = 0;
  await copyEvents({
    ...{ source: source.store, target: target.store },
    onCopied(events) {
      copied += events;
      onProgress({ step: 'events copied', done: copied });
    },
  });
  const { events, fault } = await compare(options);
  const log = fault === undefined ? await copyLog(options) : { deliveries: null, faults: [fault] };
  await assertUnchanged(source, sourceEnd);
  const report = { events, deliveries: log.deliveries, copiedBefore: false, faults: log.faults };
  if (log.deliveries === null || log.faults.length > 0) return report;
  await recordCopy(options, { from_store_id: storeId, events, deliveries: log.deliveries });
  await options.markMoved();
  const late = await recordedAfter(sourceEnd, source.store);
  await endCopy(target.coordination, storeId);
  return { ...report, faults: late };
}

/** Compares the two logs. `copyEnd` is the end of the target's log when the copy was completed. */
function compare(
  { source, target, onProgress }: CopyStoreOptions,
  copyEnd?: Position,
): Promise<LogComparison> {
  return compareLogs({
    ...{ source: source.store, target: target.store, copyEnd },
    onProgress: (done) => onProgress({ step: 'events compared', done }),
  });
}

/** The events that a command recorded in the last moment before the source was marked, one line each. */
async function recordedAfter(copied: Position, source: EventStore): Promise<string[]> {
  const late: string[] = [];
  for await (const { events } of readToEnd(source, { prefixes: [], after: copied }))
    for (const event of events)
      if (!isMark(event)) late.push(`${textOfRef(event)} (${event.type}) is not in the target`);
  return late;
}

function copyLog({ source, target, onProgress }: CopyStoreOptions): Promise<DeliveryCopy> {
  return copyDeliveries({
    source: source.queue.tables,
    target: target.queue.tables,
    targetStore: target.store,
    onProgress: (step, done) => onProgress({ step, done }),
  });
}

/**
 * Gives an empty target the event that names the source, before any other event, so that it is known whose copy it is. Throws
 * `REFUSED` without a change if the target is another store, or has events but no name.
 */
async function nameTarget(source: EventStore, target: EventStore): Promise<void> {
  const [[name], [named]] = await Promise.all([firstOperation(source), firstOperation(target)]);
  if (name === undefined) throw new Error('the source has no name');
  if (named !== undefined) {
    if (name.id === named.id) return;
    throw new FuelError(
      'REFUSED',
      `the target is event store ${storeIdOf(named)} and this one is ${storeIdOf(name)}: use an empty one`,
    );
  }
  const other = await anyEvent(target);
  if (other !== undefined) {
    throw new FuelError(
      'REFUSED',
      `the target holds events and no name (the first is ${textOfRef(other)}): use an empty one`,
    );
  }
  const append = { stream: OPERATIONS_STREAM, expected: 'none', events: [toCopied(name)] } as const;
  const [result] = await target.append([append]);
  if (result?.kind === 'appended') return;
  throw new FuelError('REFUSED', 'another process named the target at the same moment: run the copy again');
}

function firstOperation(store: EventStore): Promise<RecordedEvent[]> {
  return store.readStream(OPERATIONS_STREAM, { limit: 1 });
}

async function anyEvent(store: EventStore): Promise<RecordedEvent | undefined> {
  for await (const { events } of readToEnd(store, { prefixes: [], after: 0 })) {
    const found = events.find(isLeaf);
    if (found !== undefined) return found;
  }
  return undefined;
}

function storeIdOf({ data }: RecordedEvent): string {
  const members = typeof data === 'object' && data !== null ? data : {};
  return 'store_id' in members ? String(members.store_id) : 'without a name';
}

async function assertUnchanged({ store, coordination }: CopyEnd, copiedTo: Position): Promise<void> {
  await assertNoLiveProcess(coordination, 'the store that is copied');
  if ((await store.head()) === copiedTo) return;
  throw new FuelError('REFUSED', 'events were recorded while the store was copied: run the copy again');
}

async function assertNoLiveProcess(coordination: Coordination, what: string): Promise<void> {
  const live = await coordination.live(PROCESS_MAX_AGE_MS);
  if (live.length === 0) return;
  const processes = live.map(({ pid, host }) => `process ${pid} on ${host}`).join(', ');
  throw new FuelError('REFUSED', `${processes} still works on ${what}: stop the service first`);
}

async function recordCopy(
  { target, author, clock }: CopyStoreOptions,
  data: { readonly from_store_id: string; readonly events: number; readonly deliveries: number },
): Promise<void> {
  await recordOperations(target.store, [{ type: 'StoreCopied', data }], { author, clock });
}
