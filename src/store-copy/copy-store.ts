import type { Clock } from '../clock.ts';
import type { Coordination } from '../coordination/coordination.ts';
import { PROCESS_MAX_AGE_MS } from '../coordination/process-report.ts';
import type { DeliveryLogCopy } from '../deliveries/queue/log-copy.ts';
import { OPERATIONS_STREAM } from '../domain/operations-events.ts';
import { FuelError } from '../errors.ts';
import type { EventStore, Position } from '../event-store/event-store.ts';
import { type Author, newEvent } from '../event-store/new-event.ts';
import { storeIdentity } from '../event-store/store-identity.ts';
import { placeOf } from './copied-event.ts';
import { copyDeliveries, type DeliveryCopy, relocateDeliveries } from './copy-deliveries.ts';
import { copyEvents, type EventCopy, verifyEvents } from './copy-events.ts';
import { type CopyPlan, planCopy } from './copy-plan.ts';
import { nameTarget } from './name-target.ts';
import { relocated } from './relocate.ts';
import { beginCopy, endCopy, endRecordedCopy, markVerified } from './unfinished-copy.ts';

/** What is copied from, or to. The same object on both ends means that this part stays where it is. */
export interface CopyEnd {
  readonly store: EventStore;
  readonly deliveries: DeliveryLogCopy;
  readonly coordination: Coordination;
}

export interface CopyStoreOptions {
  readonly source: CopyEnd & { readonly erasedStreams: () => Promise<readonly string[]> };
  readonly target: CopyEnd;
  readonly author: Author;
  readonly clock: Clock;
  readonly onProgress: (progress: CopyProgress) => void;
}

export interface CopyProgress {
  readonly step: 'events compared' | 'events copied' | 'deliveries compared' | 'deliveries copied';
  readonly done: number;
}

export interface CopyReport {
  /** Events that stand in the target as in the source; `null` where they stay where they are. */
  readonly events: number | null;
  /** Likewise deliveries; where they were copied before, how many that were. */
  readonly deliveries: number | null;
  /** Everything had been copied before: this time it was only compared. */
  readonly copiedBefore: boolean;
  /** What is not the same, a line each; the copy is complete where there is none. */
  readonly faults: readonly string[];
}

/**
 * Copies a store that nobody works on into other engines: events with their streams, revisions and ids, erasures,
 * and the delivery log with its positions in the new log. Views, leases and the places of subscriptions are not
 * copied: they are made anew there, and the copied log keeps any delivery from being made again.
 *
 * It can be interrupted anywhere and run again: it goes on where it was. At its end, once everything was read
 * back and found equal, `StoreCopied` goes on record; a run after that only compares. Rejects with `REFUSED`
 * where a process lives on either end, the target is another store, or the source has changed meanwhile.
 */
export async function copyStore(options: CopyStoreOptions): Promise<CopyReport> {
  const { source, target, clock } = options;
  await assertNobodyLives(source.coordination, 'the store that is copied');
  const storeId = await storeIdentity(source.store, clock);
  const plan = await planCopy(options);
  const copiedBefore = plan.events.kind !== 'copy' && plan.deliveries === 'none';
  if (!copiedBefore) await assertNobodyLives(target.coordination, 'the target');
  if (plan.events.kind !== 'none') await nameTarget(plan.first, target.store);
  if (!copiedBefore) await claimTarget(options, plan, storeId);
  const events = await eventsPart(options, plan);
  const log = events?.faults.length ? undefined : await deliveriesPart(options, plan);
  const report = {
    events: events?.events ?? null,
    deliveries: log?.deliveries ?? plan.copiedBefore,
    copiedBefore,
    faults: [...(events?.faults ?? []), ...(log?.faults ?? [])],
  };
  const marked = target.coordination === source.coordination ? undefined : target.coordination;
  if (copiedBefore && marked !== undefined) await endRecordedCopy(marked, storeId);
  if (copiedBefore || report.faults.length > 0) return report;
  await assertUnchanged(options, events?.sourceEnd);
  if (marked !== undefined) await markVerified(marked, storeId);
  await recordCopy(options, storeId, {
    events: plan.events.kind === 'copy' ? report.events : null,
    deliveries: plan.deliveries === 'copy' ? report.deliveries : null,
  });
  if (marked !== undefined) await endCopy(marked, storeId);
  return report;
}

/** The mark that keeps a service from starting there comes last: a target that is refused stays usable. */
async function claimTarget(options: CopyStoreOptions, plan: CopyPlan, storeId: string): Promise<void> {
  const { source, target } = options;
  if (plan.deliveries === 'copy') await target.deliveries.adopt(await source.deliveries.logId());
  if (target.coordination !== source.coordination) await beginCopy(target.coordination, storeId);
}

async function eventsPart(options: CopyStoreOptions, plan: CopyPlan): Promise<EventCopy | undefined> {
  if (plan.events.kind === 'none') return undefined;
  const { source, target, onProgress } = options;
  const parts = {
    source: source.store,
    target: target.store,
    erasedStreams: await source.erasedStreams(),
    first: placeOf(plan.first),
    onProgress: (step: CopyProgress['step'], done: number) => onProgress({ step, done }),
  };
  return plan.events.kind === 'copy' ? copyEvents(parts) : verifyEvents(parts, plan.events.mark.position - 1);
}

async function deliveriesPart(
  { source, target, onProgress }: CopyStoreOptions,
  plan: CopyPlan,
): Promise<DeliveryCopy | undefined> {
  if (plan.deliveries === 'none') return undefined;
  if (plan.deliveries === 'relocate') {
    await relocateDeliveries(target.deliveries, (batch) => relocated(batch, target.store));
    return undefined;
  }
  const isSameStore = plan.events.kind === 'none';
  return copyDeliveries({
    source: source.deliveries,
    target: target.deliveries,
    relocate: (batch) => (isSameStore ? Promise.resolve(batch) : relocated(batch, target.store)),
    onProgress: (step, done) => onProgress({ step, done }),
  });
}

async function assertUnchanged({ source }: CopyStoreOptions, copiedTo: Position | undefined): Promise<void> {
  await assertNobodyLives(source.coordination, 'the store that is copied');
  if (copiedTo === undefined || (await source.store.head()) === copiedTo) return;
  throw new FuelError('REFUSED', 'events were recorded while the store was copied: run the copy again');
}

async function recordCopy(
  { target, author, clock }: CopyStoreOptions,
  storeId: string,
  counts: { readonly events: number | null; readonly deliveries: number | null },
): Promise<void> {
  const data = { from_store_id: storeId, ...counts };
  const event = newEvent({ type: 'StoreCopied', data }, author, clock.now());
  const [result] = await target.store.append([
    { stream: OPERATIONS_STREAM, expected: 'any', events: [event] },
  ]);
  if (result?.kind !== 'appended') throw new Error(`the stream ${OPERATIONS_STREAM} was erased`);
}

async function assertNobodyLives(coordination: Coordination, what: string): Promise<void> {
  const live = await coordination.live(PROCESS_MAX_AGE_MS);
  if (live.length === 0) return;
  const processes = live.map(({ pid, host }) => `process ${pid} on ${host}`).join(', ');
  throw new FuelError('REFUSED', `${processes} still works on ${what}: stop the service first`);
}
