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
import type { LogVerifier } from '../../seals/checkpoint.ts';
import { isLeaf } from '../../seals/leaf.ts';
import { leavesAfter } from '../../seals/leaves.ts';
import { type Hash, TreeEdge } from '../../seals/merkle-tree.ts';
import { type LogFault, verifyLog } from '../../seals/verify-log.ts';
import { isMark, moveInLog } from '../../service/stores/moved-store.ts';
import { beginCopy, endCopy } from '../../service/stores/unfinished-copy.ts';
import { copyDeliveries, nameLog } from './copy-deliveries.ts';
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
  /** The key of the source's seals. */
  readonly key: LogVerifier;
  readonly author: Author;
  readonly clock: Clock;
  /** Marks the source as moved. It is called again if the first call may have been interrupted. */
  readonly markMoved: () => Promise<void>;
  readonly onProgress: (progress: CopyProgress) => void;
}

export interface CopyProgress {
  readonly step: 'events proven' | 'events copied' | 'deliveries copied';
  readonly done: number;
}

export interface CopyReport {
  /** The number of events in the source. */
  readonly events: number;
  /** The number of deliveries that were copied, now or before; `null` if the events differ. */
  readonly deliveries: number | null;
  /** True if everything was copied before. Then the events were only proven again. */
  readonly copiedBefore: boolean;
  /** The first difference of the target from what was sealed; `undefined` if there is none. */
  readonly fault: LogFault | undefined;
  /** Events that were recorded in the source while it was marked as moved. The target does not have them. */
  readonly late: readonly RecordedEvent[];
}

/**
 * Copies a stopped store into other engines: events with their streams, revisions and ids, erasures, and the
 * delivery log with its positions in the new event store. Views, leases and the positions of subscriptions are not
 * copied but recreated there; the copied delivery log prevents a second delivery of anything.
 *
 * It can be interrupted anywhere: the next run copies everything again, which changes nothing where the target has it. Once the
 * seals of the source hold in the target, and its tree has the same root, it records `StoreCopied` and marks the source as moved; a
 * run after that only proves the events again. Rejects with `REFUSED` if a process is live on either side, the target is another
 * store, or the source changes during the copy, and with `STORE_MOVED` if the source was moved to another target.
 */
export async function copyStore(options: CopyStoreOptions): Promise<CopyReport> {
  const { source, target, clock } = options;
  await assertNoLiveProcess(source.coordination, 'the store that is copied');
  const storeId = await storeIdentity(source.store, clock);
  const before = (await operationsOf(target.store)).copied;
  if (before === undefined) return copyAll(options, storeId);
  await nameTarget(source.store, target.store);
  const { events, fault } = await prove(options);
  // The former run may have been interrupted right before these two steps.
  if (fault === undefined) await options.markMoved();
  await endCopy(target.coordination, storeId);
  return { events, deliveries: before.deliveries, copiedBefore: true, fault, late: [] };
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
    source: source.store,
    target: target.store,
    onCopied(events) {
      copied += events;
      onProgress({ step: 'events copied', done: copied });
    },
  });
  const { events, fault } = await prove(options);
  const deliveries = fault === undefined ? await copyLog(options) : null;
  await assertUnchanged(source, sourceEnd);
  const report = { events, deliveries, copiedBefore: false, fault, late: [] };
  if (deliveries === null) return report;
  await recordCopy(options, { from_store_id: storeId, events, deliveries });
  await options.markMoved();
  const late = await recordedAfter(sourceEnd, source.store);
  await endCopy(target.coordination, storeId);
  return { ...report, late };
}

/**
 * Proves that the target's log is what was sealed, and begins with the source's events in the same order: with those after its last
 * seal too, since the root of the source's tree is a checkpoint of the target's.
 */
async function prove({
  source,
  target,
  key,
  onProgress,
}: CopyStoreOptions): Promise<{ readonly events: number; readonly fault: LogFault | undefined }> {
  const checkpoint = await treeOf(source.store);
  const { fault } = await verifyLog({
    store: target.store,
    key,
    checkpoint,
    onProgress: (done) => onProgress({ step: 'events proven', done }),
  });
  return { events: checkpoint.size, fault };
}

/** The tree of a log as it is sealed, without the marks of a moved store at its end, which are not copied. */
async function treeOf(store: EventStore): Promise<TreeEdge> {
  const { gaps } = await operationsOf(store);
  const tree = new TreeEdge();
  let marks: Hash[] = [];
  for await (const leaves of leavesAfter(store, { size: 0, position: 0 }, { gaps }))
    for (const { hash, event } of leaves) {
      marks.push(hash);
      if (event !== undefined && isMark(event)) continue;
      for (const leaf of marks) tree.append(leaf);
      marks = [];
    }
  return tree;
}

/** The events that a command recorded in the last moment before the source was marked. */
async function recordedAfter(copied: Position, source: EventStore): Promise<RecordedEvent[]> {
  const late: RecordedEvent[] = [];
  for await (const { events } of readToEnd(source, { prefixes: [], after: copied }))
    for (const event of events) if (!isMark(event)) late.push(event);
  return late;
}

function copyLog({ source, target, onProgress }: CopyStoreOptions): Promise<number> {
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
      `the target is event store ${storeIdOf(named)} and this one is ${storeIdOf(name)}. Copy into an empty one`,
    );
  }
  const other = await anyEvent(target);
  if (other !== undefined) {
    throw new FuelError(
      'REFUSED',
      `the target already holds events (the first is ${textOfRef(other)}) and is not a copy of this store. Copy into an empty one`,
    );
  }
  const append = { stream: OPERATIONS_STREAM, expected: 'none', events: [toCopied(name)] } as const;
  const [result] = await target.append([append]);
  if (result?.kind === 'appended') return;
  throw new FuelError('REFUSED', 'another process named the target at the same moment. Run the copy again');
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
  throw new FuelError('REFUSED', 'events were recorded while the store was copied. Run the copy again');
}

async function assertNoLiveProcess(coordination: Coordination, what: string): Promise<void> {
  const live = await coordination.live(PROCESS_MAX_AGE_MS);
  if (live.length === 0) return;
  const processes = live.map(({ pid, host }) => `process ${pid} on ${host}`).join(', ');
  throw new FuelError('REFUSED', `${processes} still works on ${what}. Stop the service first`);
}

async function recordCopy(
  { target, author, clock }: CopyStoreOptions,
  data: { readonly from_store_id: string; readonly events: number; readonly deliveries: number },
): Promise<void> {
  await recordOperations(target.store, [{ type: 'StoreCopied', data }], { author, clock });
}
