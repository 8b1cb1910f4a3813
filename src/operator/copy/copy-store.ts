import { isMark, moveInLog } from '../../accounts/moved-store.ts';
import { beginCopy, endCopy } from '../../accounts/unfinished-copy.ts';
import type { Clock } from '../../base/clock.ts';
import { type Coordination, PROCESS_MAX_AGE_MS } from '../../base/coordination/coordination.ts';
import { FuelError } from '../../base/errors.ts';
import { OPERATIONS_STREAM } from '../../domain/operations-events.ts';
import type { EventStore, PersistentSubscriptions } from '../../event-store/event-store.ts';
import type { Author } from '../../event-store/new-event.ts';
import { readOperations, recordOperations } from '../../event-store/operations.ts';
import type { Position, RecordedEvent } from '../../event-store/recorded-event.ts';
import { groupStatus } from '../../event-store/skipped-events.ts';
import { storeIdentity } from '../../event-store/store-identity.ts';
import { DELIVERIES_GROUP } from '../../push/fan-out/run-fan-out.ts';
import { NOTICES_GROUP } from '../../push/notices/notifier.ts';
import { differenceBetween, placeOf, toCopied } from './copied-event.ts';
import { type CopiedLog, copyDeliveries, type DeliveryCopy } from './copy-deliveries.ts';
import { copyEvents, type EventCopyOptions, verifyEvents } from './copy-events.ts';
import { isSystem, readLog } from './log-comparison.ts';

/** What is copied from, or to. */
export interface CopyEnd {
  readonly store: EventStore;
  readonly queue: CopiedLog;
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
  const { events, faults } = await verifyEvents(await eventOptions(options), before.position - 1);
  // Where the former run was interrupted right before these.
  if (faults.length === 0) await options.markMoved();
  await endCopy(target.coordination, storeId);
  return { events, deliveries: before.deliveries, copiedBefore: true, faults };
}

async function copyAll(
  options: CopyStoreOptions,
  { first, storeId }: { readonly first: RecordedEvent; readonly storeId: string },
): Promise<CopyReport> {
  const { source, target } = options;
  await assertNoLiveProcess(target.coordination, 'the target');
  await nameTarget(first, target.store);
  await target.queue.store({ name: await source.queue.logId() });
  // Keeps a service from starting there. Last of the three, so that a target that is refused stays usable.
  await beginCopy(target.coordination, storeId);
  const events = await copyEvents(await eventOptions(options));
  const log = events.faults.length > 0 ? undefined : await copyLog(options);
  const deliveries = log?.deliveries ?? null;
  const faults = [...events.faults, ...(log?.faults ?? [])];
  const report = { events: events.events, deliveries, copiedBefore: false, faults };
  if (deliveries === null || faults.length > 0) return report;
  await assertUnchanged(source, events.sourceEnd);
  await recordCopy(options, { from_store_id: storeId, events: report.events, deliveries });
  await options.markMoved();
  const late = await recordedAfter(events.sourceEnd, source.store);
  await endCopy(target.coordination, storeId);
  return { ...report, faults: late };
}

/** What a command has recorded in the last moment before the source was marked, one line each. */
async function recordedAfter(copied: Position, source: EventStore): Promise<string[]> {
  const late: string[] = [];
  for await (const { events } of readLog(source, { after: copied, upTo: await source.head() }))
    for (const event of events)
      if (!isMark(event)) late.push(`${placeOf(event)} (${event.type}) is not in the target`);
  return late;
}

/** How many events are parked in each of the service's groups; groups without any are left out. */
export async function parkedByGroup(
  store: EventStore,
  subscriptions: PersistentSubscriptions,
): Promise<readonly { readonly group: string; readonly parked: number }[]> {
  const counts: { group: string; parked: number }[] = [];
  for (const group of [DELIVERIES_GROUP, NOTICES_GROUP]) {
    const { parked } = await groupStatus(store, subscriptions, group);
    if (parked > 0) counts.push({ group, parked });
  }
  return counts;
}

async function eventOptions({ source, target, onProgress }: CopyStoreOptions): Promise<EventCopyOptions> {
  return {
    source: source.store,
    target: target.store,
    erasedStreams: await source.erasedStreams(),
    onProgress: (step, done) => onProgress({ step, done }),
  };
}

function copyLog({ source, target, onProgress }: CopyStoreOptions): Promise<DeliveryCopy> {
  return copyDeliveries({
    source: source.queue,
    target: target.queue,
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
    if (differenceBetween(first, named) === undefined) return;
    throw new FuelError(
      'REFUSED',
      `the target is event store ${storeIdOf(named)} and this one is ${storeIdOf(first)}: use an empty one`,
    );
  }
  const other = await anyEvent(target);
  if (other !== undefined) {
    throw new FuelError(
      'REFUSED',
      `the target holds events and no name (the first is ${placeOf(other)}): use an empty one`,
    );
  }
  const append = { stream: OPERATIONS_STREAM, expected: 'none', events: [toCopied(first)] } as const;
  const [result] = await target.append([append]);
  if (result?.kind === 'appended') return;
  throw new FuelError('REFUSED', 'another process named the target at the same moment: run the copy again');
}

async function anyEvent(store: EventStore): Promise<RecordedEvent | undefined> {
  for await (const { events } of readLog(store, { after: 0, upTo: await store.head() })) {
    const found = events.find(({ stream }) => !isSystem(stream));
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
