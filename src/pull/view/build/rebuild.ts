import { steadyClock } from '../../../base/clock.ts';
import type { Coordination } from '../../../base/coordination/coordination.ts';
import { whileHolding } from '../../../base/coordination/while-holding.ts';
import { FuelError } from '../../../base/errors.ts';
import { pause } from '../../../base/pause.ts';
import { retryWhileUnavailable } from '../../../base/retry.ts';
import { damageOf, describeDamage, RESTORE_EVENTS } from '../../../event-store/damage.ts';
import type { EventStore } from '../../../event-store/event-store.ts';
import { type FollowOptions, follow } from '../../../event-store/follow.ts';
import type { Author } from '../../../event-store/new-event.ts';
import { recordOperations } from '../../../event-store/operations.ts';
import { isDamaged, type Position, type RecordedEvent } from '../../../event-store/recorded-event.ts';
import { assertCheckpoint, continuesAfter, storeIdentity } from '../../../event-store/store-identity.ts';
import { type BuildProgress, buildProgress, type Checkpoint } from '../checkpoint.ts';
import { applyBatch, FOLLOWED, type ProjectorOptions, VIEW_NAME } from '../projector.ts';
import type { TransactionsView } from '../transactions-view.ts';

const BUILD_LEASE = 'view-build';
const LEASE_MS = 5_000;
/** For the lease of a process that was killed. */
const MAX_LEASE_WAIT_MS = 2 * LEASE_MS;
const LEASE_CHECK_MS = 200;
/** Longer than a failover takes: a disk that is full does not become available by waiting. */
const MAX_UNAVAILABLE_MS = 20_000;

export interface RebuildOptions extends Omit<ProjectorOptions, 'gatherMs' | 'onOlderRendering'> {
  readonly author: Author;
  /** The reason, which is recorded. */
  readonly reason: string;
  readonly onProgress?: (progress: BuildProgress) => void;
}

export interface RebuildResult {
  readonly outcome: 'switched' | 'interrupted';
  /** The position of the view that is served. */
  readonly position: Position;
}

/**
 * Builds a new view while the present one is served, and serves the new one once it has reached the end of the log. An
 * interrupted build is kept, and the next call continues it. A view that can't be served (of another store, or ahead of this
 * one) is reset first, and answers 503 until the new one is complete. Rejects with `REFUSED` while another process rebuilds,
 * and with `STORE_DAMAGED` at a damaged event, since the served view may have all that is left of it.
 */
export async function rebuildTransactions(options: RebuildOptions): Promise<RebuildResult> {
  const { coordination, holder, log, signal } = options;
  const lease = { coordination, lease: BUILD_LEASE, holder, ttlMs: LEASE_MS };
  const how = { component: 'rebuild', log, signal, maxUnavailableMs: MAX_UNAVAILABLE_MS };
  const deadlineMs = steadyClock.now() + MAX_LEASE_WAIT_MS;
  for (;;) {
    const build = (until: AbortSignal) => Promise.allSettled([rebuild({ ...options, signal: until })]);
    const led = await retryWhileUnavailable(() => whileHolding(lease, how, build), how);
    const [built] = led?.result ?? [];
    if (built?.status === 'rejected') throw built.reason;
    // A build that ended since its lease could not be renewed in time is continued.
    if (built?.value.outcome === 'switched' || (built !== undefined && signal.aborted)) return built.value;
    if (built === undefined && (steadyClock.now() > deadlineMs || signal.aborted)) {
      throw new FuelError('REFUSED', 'another process is rebuilding this view. See `fuel projection status`');
    }
    await pause(LEASE_CHECK_MS, signal);
  }
}

async function rebuild(options: RebuildOptions): Promise<RebuildResult> {
  const { store, view, clock, log, signal, onProgress } = options;
  const place = { store, storeId: await storeIdentity(store, clock) };
  const [served, left] = [await view.checkpoint(), await view.checkpoint('built')];
  const isServed = await fits(served, place);
  if (!isServed) await view.reset(place.storeId, await store.head());
  const unusable = (await fits(left, place)) ? undefined : left?.generation;
  const begun = await view.startBuild({ storeId: place.storeId, servesFrom: await store.head(), unusable });
  const { generation } = begun;
  let { events } = begun.since;
  let outcome = 'interrupted' as RebuildResult['outcome'];

  const handle: FollowOptions['handle'] = async (batch, until) => {
    if (isServed) assertWhole(batch.events);
    if ((await applyBatch({ store, view }, generation, batch)) === 'reset')
      return { restartBecause: 'the new view was reset' };
    events += batch.events.length;
    const progress = { ...begun, position: batch.checkpoint, since: { ...begun.since, events } };
    onProgress?.(buildProgress(progress, clock.now()));
    if (!batch.caughtUp || until.aborted || !(await view.serveBuild(generation))) return 'next';
    outcome = 'switched';
    return 'done';
  };

  const checkpoint = () => positionOf(view, generation);
  const how = { component: 'rebuild', log, signal, maxUnavailableMs: MAX_UNAVAILABLE_MS };
  await follow({ ...how, ...FOLLOWED, store, checkpoint, handle });
  if (outcome === 'switched') await record(options);
  return { outcome, position: (await view.checkpoint())?.position ?? 0 };
}

async function positionOf(view: TransactionsView, generation: number): Promise<Position> {
  for (const which of ['built', 'served'] as const) {
    const checkpoint = await view.checkpoint(which);
    if (checkpoint?.generation === generation) return continuesAfter(checkpoint);
  }
  throw new FuelError('REFUSED', 'the view under construction was dropped. Run the command again');
}

function assertWhole(events: readonly RecordedEvent[]): void {
  const damaged = events.find(isDamaged);
  const damage = damaged && damageOf(damaged);
  if (damage === undefined) return;
  throw new FuelError(
    'STORE_DAMAGED',
    `the new view is not served, because ${describeDamage(damage)}: ${RESTORE_EVENTS}`,
  );
}

async function record({ store, clock, author, reason }: RebuildOptions): Promise<void> {
  const data = { view: VIEW_NAME, reason };
  await recordOperations(store, [{ type: 'ViewRebuilt', data }], { author, clock });
}

/** Says whether a generation was made from this log, as far as the log goes. */
async function fits(
  made: Checkpoint | undefined,
  place: { readonly store: EventStore; readonly storeId: string },
): Promise<boolean> {
  if (made === undefined) return false;
  try {
    await assertCheckpoint(made, place, VIEW_NAME);
    return true;
  } catch (error) {
    if (error instanceof FuelError && error.code === 'STORE_MISMATCH') return false;
    throw error;
  }
}

/** Says whether a process is building a view now. */
export async function isBuilding(coordination: Pick<Coordination, 'holder'>): Promise<boolean> {
  return (await coordination.holder(BUILD_LEASE)) !== undefined;
}
