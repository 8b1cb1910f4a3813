import { isMark, moveInLog } from '../../accounts/moved-store.ts';
import { beginCopy, endCopy } from '../../accounts/unfinished-copy.ts';
import type { Clock } from '../../base/clock.ts';
import { type Coordination, PROCESS_MAX_AGE_MS } from '../../base/coordination/coordination.ts';
import { FuelError } from '../../base/errors.ts';
import { OPERATIONS_STREAM } from '../../domain/operations-events.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import type { Author } from '../../event-store/new-event.ts';
import { readOperations, recordOperations } from '../../event-store/operations.ts';
import { readToEnd } from '../../event-store/reads.ts';
import { type Position, type RecordedEvent, textOfRef } from '../../event-store/recorded-event.ts';
import { storeIdentity } from '../../event-store/store-identity.ts';
import type { DeliveryQueue } from '../../push/queue/delivery-queue.ts';
import { Gaps } from '../../seals/seals.ts';
import { compareLogs, type LogComparison } from './compare-logs.ts';
import { toCopied } from './copied-event.ts';
import { copyDeliveries, type DeliveryCopy, nameLog } from './copy-deliveries.ts';
import { copyEvents, eraseStreams } from './copy-events.ts';

/** What EventStoreDB records for itself. */
const SYSTEM_STREAMS = '$';

/** What is copied from, or to. */
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
  /** Marks the source as moved; called again where that may have been interrupted. */
  readonly markMoved: () => Promise<void>;
  readonly onProgress: (progress: CopyProgress) => void;
}

export interface CopyProgress {
  readonly step: 'events compared' | 'events copied' | 'deliveries copied';
  readonly done: number;
}

export interface CopyReport {
  /** Events that are the same in the target as in the source. */
  readonly events: number;
  /** Likewise deliveries; the number on record where they were copied before, `null` where the events differ. */
  readonly deliveries: number | null;
  /** Everything was copied before: this time the events were only compared. */
  readonly copiedBefore: boolean;
  /** What differs, one line each; the copy is complete where there is none. */
  readonly faults: readonly string[];
}

/**
 * Copies a stopped store into other engines: events with their streams, revisions and ids, erasures, and the
 * delivery log with its positions in the new event store. Views, leases and the positions of subscriptions are not
 * copied but recreated there; the copied delivery log prevents a second delivery of anything.
 *
 * It can be interrupted anywhere and run again: it continues where it was. When everything was read back and found
 * equal, it records `StoreCopied` and marks the source as moved; a run after that only compares. Rejects with `REFUSED`
 * where a process is live on either side, the target is another store, or the source changes during the copy, and with
 * `STORE_MOVED` where the source was moved to another target.
 */
export async function copyStore(options: CopyStoreOptions): Promise<CopyReport> {
  const { source, target, clock } = options;
  await assertNoLiveProcess(source.coordination, 'the store that is copied');
  const storeId = await storeIdentity(source.store, clock);
  const [first] = await source.store.readStream(OPERATIONS_STREAM);
  if (first === undefined) throw new Error('the source has no name');
  const before = await recordOfCopy(target.store);
  if (before === undefined) {
    const move = await moveInLog(source.store);
    if (move === undefined) return copyAll(options, { first, storeId });
    throw new FuelError('STORE_MOVED', `this store was moved to ${move.to.join(' and ')} at ${move.at}`);
  }
  await nameTarget(first, target.store);
  const { events, fault, missingNamed } = await compare(options, before.position);
  const faults = fault === undefined ? missingNamed : [fault];
  // Where the former run was interrupted right before these.
  if (faults.length === 0) await options.markMoved();
  await endCopy(target.coordination, storeId);
  return { events, deliveries: before.deliveries, copiedBefore: true, faults };
}

async function copyAll(
  options: CopyStoreOptions,
  { first, storeId }: { readonly first: RecordedEvent; readonly storeId: string },
): Promise<CopyReport> {
  const { source, target, onProgress } = options;
  await assertNoLiveProcess(target.coordination, 'the target');
  await nameTarget(first, target.store);
  await source.queue.logId(); // a log without a name gets one
  await nameLog({ source: source.queue.tables, target: target.queue.tables });
  // Keeps a service from starting there. Last of the three, so that a target that is refused stays usable.
  await beginCopy(target.coordination, storeId);
  await eraseStreams(await source.erasedStreams(), target.store);
  const sourceEnd = await source.store.head();
  const before = await compare(options);
  const nothing = { events: before.events, deliveries: null, copiedBefore: false };
  if (before.fault !== undefined) return { ...nothing, faults: [before.fault] };
  let copied = before.events;
  await copyEvents({
    ...{ source: source.store, target: target.store, after: before.copiedTo },
    onCopied(events) {
      copied += events;
      onProgress({ step: 'events copied', done: copied });
    },
  });
  const { events, fault, missingNamed } = await compare(options);
  await assertUnchanged(source, sourceEnd);
  if (fault !== undefined || missingNamed.length > 0)
    return { ...nothing, events, faults: fault === undefined ? missingNamed : [fault] };
  const { deliveries, faults } = await copyLog(options);
  const report = { events, deliveries, copiedBefore: false, faults };
  if (faults.length > 0) return report;
  await assertUnchanged(source, sourceEnd);
  await recordCopy(options, { from_store_id: storeId, events, deliveries });
  await options.markMoved();
  const late = await recordedAfter(sourceEnd, source.store);
  await endCopy(target.coordination, storeId);
  return { ...report, faults: late };
}

/** What a command has recorded in the last moment before the source was marked, one line each. */
async function recordedAfter(copied: Position, source: EventStore): Promise<string[]> {
  const late: string[] = [];
  for await (const { events } of readToEnd(source, { prefixes: [], after: copied }))
    for (const event of events)
      if (!isMark(event)) late.push(`${textOfRef(event)} (${event.type}) is not in the target`);
  return late;
}

/** The source's log with the target's; `copyEnd` is where the target's ended when it was copied whole. */
async function compare(
  { source, target, onProgress }: CopyStoreOptions,
  copyEnd?: Position,
): Promise<LogComparison> {
  const gaps = new Gaps();
  await gaps.read(copyEnd === undefined ? source.store : target.store); // the target may have erased more since
  return compareLogs({
    ...{ source: source.store, target: target.store, gaps, copyEnd },
    onProgress: (done) => onProgress({ step: 'events compared', done }),
  });
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
 * Gives an empty target the event that names the source, before any other: from then on it is known whose copy
 * it is. Throws `REFUSED`, with nothing changed, where the target is another store or holds events without a
 * name.
 */
async function nameTarget(first: RecordedEvent, target: EventStore): Promise<void> {
  const [named] = await target.readStream(OPERATIONS_STREAM);
  if (named !== undefined) {
    if (first.id === named.id) return;
    throw new FuelError(
      'REFUSED',
      `the target is event store ${storeIdOf(named)} and this one is ${storeIdOf(first)}: use an empty one`,
    );
  }
  const other = await anyEvent(target);
  if (other !== undefined) {
    throw new FuelError(
      'REFUSED',
      `the target holds events and no name (the first is ${textOfRef(other)}): use an empty one`,
    );
  }
  const append = { stream: OPERATIONS_STREAM, expected: 'none', events: [toCopied(first)] } as const;
  const [result] = await target.append([append]);
  if (result?.kind === 'appended') return;
  throw new FuelError('REFUSED', 'another process named the target at the same moment: run the copy again');
}

async function anyEvent(store: EventStore): Promise<RecordedEvent | undefined> {
  for await (const { events } of readToEnd(store, { prefixes: [], after: 0 })) {
    const found = events.find(({ stream }) => !stream.startsWith(SYSTEM_STREAMS));
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

/** What `StoreCopied` says and where it is in the log, `undefined` while no copy was completed. */
async function recordOfCopy(
  store: EventStore,
): Promise<{ readonly position: Position; readonly deliveries: number } | undefined> {
  for (const { type, data, recorded } of await readOperations(store))
    if (type === 'StoreCopied') return { position: recorded.position, deliveries: data.deliveries };
  return undefined;
}

async function recordCopy(
  { target, author, clock }: CopyStoreOptions,
  data: { readonly from_store_id: string; readonly events: number; readonly deliveries: number },
): Promise<void> {
  await recordOperations(target.store, [{ type: 'StoreCopied', data }], { author, clock });
}
