import { RENDERING_VERSION } from '../../../../projections/transactions.ts';
import type { Coordination } from '../../../base/coordination/coordination.ts';
import { whileHolding } from '../../../base/coordination/while-holding.ts';
import { FuelError } from '../../../base/errors.ts';
import { pause } from '../../../base/pause.ts';
import { world } from '../../../base/world.ts';
import { describeDamage, RESTORE_EVENTS } from '../../../event-store/damage.ts';
import type { EventStore } from '../../../event-store/event-store.ts';
import { type Follower, follow } from '../../../event-store/follow.ts';
import type { Author } from '../../../event-store/new-event.ts';
import { recordOperations } from '../../../event-store/operations.ts';
import type { Position } from '../../../event-store/recorded-event.ts';
import { assertCheckpoint, continuesAfter, storeIdentity } from '../../../event-store/store-identity.ts';
import { type BuildProgress, buildProgress, type Checkpoint, isComplete } from '../checkpoint.ts';
import { damagedEvents } from '../parked-events.ts';
import { applyBatch, FOLLOWED, type ProjectorOptions, runProjector, VIEW_NAME } from '../projector.ts';
import type { TransactionsView } from '../transactions-view.ts';
import { compareViews, type ViewComparison } from './compare.ts';

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
  /** Whether the new view is served even if its records differ from those of the present one. */
  readonly accept: boolean;
  readonly onProgress?: (progress: BuildProgress) => void;
}

export interface RebuildResult {
  /** With `differs` the present view is still served. */
  readonly outcome: 'switched' | 'differs' | 'interrupted';
  readonly position: number;
  /** It is `undefined` if there was nothing to compare with: an unusable view, or one of an older rendering. */
  readonly comparison: Pick<ViewComparison, 'records' | 'differing' | 'named'> | undefined;
}

/**
 * Builds a new view while the present one is served, compares the two, and serves the new one. An interrupted build is
 * kept, and the next call continues it. A view that can't be served (of another store, or ahead of this one) is reset first, and
 * answers 503 until the new one is complete. Rejects with `REFUSED` while another process rebuilds.
 */
export async function rebuildTransactions(options: RebuildOptions): Promise<RebuildResult> {
  const { coordination, holder, log, signal } = options;
  const lease = { coordination, lease: BUILD_LEASE, holder, ttlMs: LEASE_MS };
  const deadlineMs = world.elapsedMs() + MAX_LEASE_WAIT_MS;
  for (;;) {
    const led = await whileHolding(lease, { component: 'rebuild', log, signal }, (until) =>
      rebuild({ ...options, signal: until }),
    );
    if (led !== undefined) return led.result;
    if (world.elapsedMs() > deadlineMs || signal.aborted) {
      throw new FuelError(
        'REFUSED',
        'another process is rebuilding this view: fuel projection status shows how far it is',
      );
    }
    await pause(LEASE_CHECK_MS, signal);
  }
}

async function rebuild(options: RebuildOptions): Promise<RebuildResult> {
  const { store, view, clock, accept, log, onProgress } = options;
  const storeId = await storeIdentity(store, clock);
  const served = await servedView(options, storeId);
  const left = await view.checkpoint('built');
  const unusable =
    left !== undefined && !(await fits(left, { store, storeId })) ? left.generation : undefined;
  const begun = await view.startBuild({ storeId, servesFrom: await store.head(), unusable });
  const { generation } = begun;
  let { events } = begun.since;
  let comparison: ViewComparison | undefined;
  let isWhole = served === 'unusable';
  let outcome = 'interrupted' as RebuildResult['outcome'];

  const handle: Follower['handle'] = async (batch, until) => {
    if ((await applyBatch({ store, view }, generation, batch)) === 'reset')
      return { restartBecause: 'the new view was reset' };
    events += batch.events.length;
    const progress = { ...begun, position: batch.checkpoint, since: { ...begun.since, events } };
    onProgress?.(buildProgress(progress, clock.now()));
    if (!batch.caughtUp || until.aborted) return 'next';
    if (served === 'comparable') {
      comparison ??= await compareViews(store, view, generation);
      const reached = Math.min((await view.checkpoint())?.position ?? 0, batch.checkpoint);
      if (!(await comparison.judgeSuspects(reached))) return 'next';
    }
    // What the new view shows as the served one does has lost nothing.
    if (!isWhole && comparison?.differing !== 0) await assertWhole(options);
    isWhole = true;
    if (comparison !== undefined && comparison.differing > 0 && !accept) outcome = 'differs';
    else if (!until.aborted && (await view.serveBuild(generation))) outcome = 'switched';
    else return 'next';
    return 'done';
  };

  await whileServedFollows(options, served === 'comparable', async (signal) => {
    const checkpoint = () => positionOf(view, generation);
    const how = { component: 'rebuild', log, signal, maxUnavailableMs: MAX_UNAVAILABLE_MS };
    await follow({ ...how, ...FOLLOWED, store, checkpoint, handle });
    return outcome !== 'interrupted';
  });
  if (outcome === 'switched') await record(options, comparison?.differing ?? 0);
  const position = (await view.checkpoint())?.position ?? 0;
  return { outcome, position, comparison: outcome === 'interrupted' ? undefined : comparison };
}

/** A view that can't be served is reset. Only the records of a complete one of the same rendering must be the same. */
async function servedView(
  { store, view }: RebuildOptions,
  storeId: string,
): Promise<'comparable' | 'rendered otherwise' | 'unusable'> {
  const served = await view.checkpoint();
  if (served === undefined || !(await fits(served, { store, storeId }))) {
    await view.reset(storeId, await store.head());
    return 'unusable';
  }
  if (!isComplete(served)) return 'unusable';
  return served.rendering === RENDERING_VERSION ? 'comparable' : 'rendered otherwise';
}

async function positionOf(view: TransactionsView, generation: number): Promise<Position> {
  for (const which of ['built', 'served'] as const) {
    const checkpoint = await view.checkpoint(which);
    if (checkpoint?.generation === generation) return continuesAfter(checkpoint);
  }
  throw new FuelError('REFUSED', 'the view that was being built was dropped');
}

/** Refuses to replace the view while the log has a damaged event: the served view may be all that is left of it. */
async function assertWhole({ store, view, signal }: RebuildOptions): Promise<void> {
  const [damage] = await damagedEvents(store, () => view, { signal });
  if (damage === undefined) return;
  throw new FuelError(
    'STORE_DAMAGED',
    `the new view is not served: ${describeDamage(damage)}: ${RESTORE_EVENTS}`,
  );
}

/**
 * Works while the served view follows the log, which it must do to be compared: this process runs a projector that is on
 * standby if another one is active. Its failure ends the work, and is thrown unless the work was done by then.
 */
async function whileServedFollows(
  options: RebuildOptions,
  isCompared: boolean,
  work: (signal: AbortSignal) => Promise<boolean>,
): Promise<void> {
  const ended = new AbortController();
  const signal = AbortSignal.any([options.signal, ended.signal]);
  const end = (): void => ended.abort();
  const projecting = isCompared ? runProjector({ ...options, signal }).finally(end) : undefined;
  const [worked, projected] = await Promise.allSettled([work(signal).finally(end), projecting]);
  if (worked.status === 'rejected') throw worked.reason;
  if (!worked.value && projected.status === 'rejected') throw projected.reason;
}

async function record({ store, clock, author, reason }: RebuildOptions, differing: number): Promise<void> {
  const accepted = differing === 0 ? '' : `; ${differing} records differed, which was accepted`;
  const data = { view: VIEW_NAME, reason: `${reason}${accepted}` };
  await recordOperations(store, [{ type: 'ViewRebuilt', data }], { author, clock });
}

async function fits(
  served: Checkpoint,
  place: { readonly store: EventStore; readonly storeId: string },
): Promise<boolean> {
  try {
    await assertCheckpoint(served, place, VIEW_NAME);
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
