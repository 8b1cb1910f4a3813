import { RENDERING_VERSION } from '../../../../projections/transactions.ts';
import type { Clock } from '../../../clock.ts';
import type { Coordination } from '../../../coordination/coordination.ts';
import { whileHolding } from '../../../coordination/while-holding.ts';
import { OPERATIONS_STREAM } from '../../../domain/operations-events.ts';
import { TRANSACTION_STREAMS } from '../../../domain/transaction-events.ts';
import { FuelError } from '../../../errors.ts';
import { describeDamage, RESTORE_EVENTS } from '../../../event-store/damage.ts';
import type { EventStore } from '../../../event-store/event-store.ts';
import { type Author, newEvent } from '../../../event-store/new-event.ts';
import { assertCheckpoint, storeIdentity } from '../../../event-store/store-identity.ts';
import { pause } from '../../../pause.ts';
import { retryWhileUnavailable } from '../../../retry.ts';
import { projectEvent } from '../../project-event.ts';
import { applyOrPark } from '../apply-or-park.ts';
import { type Checkpoint, isComplete } from '../checkpoint.ts';
import { damagedEvents } from '../damaged-events.ts';
import { type ProjectorOptions, runProjector, VIEW_NAME } from '../projector.ts';
import type { ViewBuild } from '../view-builds.ts';
import { applySegments } from './apply-segments.ts';
import { type RowDifference, ViewComparison } from './compare.ts';
import { planSegments } from './plan.ts';
import { type BuildProgress, buildProgress, noteResumed } from './progress.ts';

/** One process leads a build; others may apply segments of it. */
const BUILD_LEASE = 'view-build';
const LEASE_MS = 5_000;
/** For the lease of a leader that was killed. */
const MAX_LEASE_WAIT_MS = 2 * LEASE_MS;
const LEASE_CHECK_MS = 200;
const PROGRESS_EVERY_MS = 250;

export interface RebuildOptions extends Omit<ProjectorOptions, 'gatherMs' | 'onOlderRendering'> {
  readonly author: Author;
  /** Why, for the record. */
  readonly reason: string;
  /** Serves the new view also where its records differ from those of the present one. */
  readonly accept: boolean;
  /** Starts further workers that apply segments, and resolves when they have ended. Without it this process applies all. */
  readonly helpers?: (signal: AbortSignal) => Promise<void>;
  readonly onProgress?: (progress: BuildProgress) => void;
}

export interface RebuildResult {
  /** `differs`: the present view is still served. */
  readonly outcome: 'switched' | 'differs' | 'interrupted';
  readonly position: number;
  /** `undefined` where there was nothing to compare with: an unusable view, or one of an older rendering. */
  readonly comparison:
    | { readonly records: number; readonly differing: number; readonly named: readonly RowDifference[] }
    | undefined;
}

/**
 * Builds a new view beside the served one, compares the two, and serves the new one in its place. What was built stays:
 * the next call continues there. A view that can't be served (of another store, or ahead of this one) is reset first, and
 * answers 503 until the new one is complete. Rejects with `REFUSED` while another process leads a build.
 */
export async function rebuildTransactions(options: RebuildOptions): Promise<RebuildResult> {
  const { coordination, holder, log } = options;
  await takeLead(options);
  // A build is safe with two leaders, so one that could not renew its lease continues.
  const onMissed = (error: unknown): void => {
    if (error !== undefined) log.warn({ err: error }, 'rebuild could not renew its lease: it continues');
  };
  const held = {
    coordination,
    lease: BUILD_LEASE,
    holder,
    ttlMs: LEASE_MS,
    signal: options.signal,
    onMissed,
  };
  try {
    return await whileHolding(held, (signal) => new Rebuild({ ...options, signal }).run());
  } finally {
    await coordination.release(BUILD_LEASE, holder);
  }
}

class Rebuild {
  readonly #options: RebuildOptions;

  constructor(options: RebuildOptions) {
    this.#options = options;
  }

  async run(): Promise<RebuildResult> {
    const { store, view, clock, signal } = this.#options;
    const storeId = await storeIdentity(store, clock);
    const comparesWith = await this.#servedToCompare(storeId);
    const build = await view.builds.start(storeId, await store.head());
    await this.#applySegments(build);
    if (signal.aborted) return this.#interrupted(build);
    await build.finish();
    const comparison = comparesWith && new ViewComparison({ store, served: view, build });
    const outcome = await this.#whileServedFollows(comparison, (signal) =>
      this.#followUntilServed(build, comparison, signal),
    );
    if (outcome === 'interrupted') return this.#interrupted(build);
    const position = (await view.checkpoint())?.position ?? 0;
    if (outcome === 'switched') await this.#record(comparison?.differing ?? 0);
    return {
      outcome,
      position,
      comparison: comparison && {
        records: comparison.records,
        differing: comparison.differing,
        named: comparison.named,
      },
    };
  }

  /** The checkpoint of a served view whose records must be the same; one that can't be served is reset. */
  async #servedToCompare(storeId: string): Promise<Checkpoint | undefined> {
    const { store, view } = this.#options;
    const served = await view.checkpoint();
    if (served === undefined || !(await fits(served, { store, storeId }))) {
      await view.reset(storeId, await store.head());
      return undefined;
    }
    if (!isComplete(served)) return undefined;
    await this.#assertWhole();
    return served.rendering === RENDERING_VERSION ? served : undefined;
  }

  /** Of a damaged event the served view may be all that is left. */
  async #assertWhole(): Promise<void> {
    const { store, view, signal } = this.#options;
    const [damage] = await damagedEvents(store, () => view, signal);
    if (damage === undefined) return;
    throw new FuelError('STORE_DAMAGED', `no view is built: ${describeDamage(damage)}: ${RESTORE_EVENTS}`);
  }

  async #applySegments(build: ViewBuild): Promise<void> {
    const { helpers, clock, signal, onProgress } = this.#options;
    const target = (await build.checkpoint())?.servesFrom ?? 0;
    await noteResumed(build, clock.now());
    const done = new AbortController();
    const watching = this.#watch(build, AbortSignal.any([signal, done.signal]));
    const planning = planSegments({ ...this.#options, build, target, splits: helpers !== undefined });
    try {
      const working = helpers === undefined ? applySegments({ ...this.#options, build }) : helpers(signal);
      await Promise.all([planning, working]);
    } finally {
      done.abort();
      await watching;
    }
    const progress = await buildProgress(build, clock.now());
    if (progress !== undefined) onProgress?.(progress);
  }

  async #watch(build: ViewBuild, signal: AbortSignal): Promise<void> {
    const { clock, onProgress, log } = this.#options;
    while (onProgress !== undefined && !signal.aborted) {
      const progress = await retryWhileUnavailable(() => buildProgress(build, clock.now()), {
        log,
        signal,
        component: 'progress',
      });
      if (progress !== undefined) onProgress(progress);
      await pause(PROGRESS_EVERY_MS, signal);
    }
  }

  /**
   * The served view must follow the log to be compared: this process takes care of it where no projector works. Its
   * failure ends the work, unless the new view is served by then.
   */
  async #whileServedFollows(
    comparison: ViewComparison | undefined,
    work: (signal: AbortSignal) => Promise<RebuildResult['outcome']>,
  ): Promise<RebuildResult['outcome']> {
    if (comparison === undefined) return work(this.#options.signal);
    const ended = new AbortController();
    const signal = AbortSignal.any([this.#options.signal, ended.signal]);
    let failure: unknown;
    const projecting = runProjector({ ...this.#options, signal }).catch((error: unknown) => {
      failure = error;
      ended.abort();
    });
    try {
      const outcome = await work(signal);
      if (outcome === 'interrupted' && failure !== undefined) throw failure;
      return outcome;
    } finally {
      ended.abort();
      await projecting;
    }
  }

  /** Follows the log until the build is as far as the served view, and serves it if it may be. */
  async #followUntilServed(
    build: ViewBuild,
    comparison: ViewComparison | undefined,
    signal: AbortSignal,
  ): Promise<RebuildResult['outcome']> {
    const { store, view, accept } = this.#options;
    let from = (await build.checkpoint())?.position ?? 0;
    let isCompared = comparison === undefined;
    const log = { prefixes: [TRANSACTION_STREAMS], after: from, signal };
    for await (const { events, checkpoint, caughtUp } of store.subscribe(log)) {
      const before = from;
      const changes = events.map(projectEvent);
      await applyOrPark(changes, (some, isWhole) => build.apply(some, isWhole ? checkpoint : before));
      from = checkpoint;
      if (!caughtUp) continue;
      if (!isCompared) await comparison?.findSuspects();
      isCompared = true;
      if (comparison !== undefined && !(await comparison.judgeSuspects())) continue;
      if (comparison !== undefined && comparison.differing > 0 && !accept) return 'differs';
      if (await view.builds.switchTo(build)) return 'switched';
    }
    return 'interrupted';
  }

  async #interrupted(build: ViewBuild): Promise<RebuildResult> {
    const position = (await build.checkpoint())?.position ?? 0;
    return { outcome: 'interrupted', position, comparison: undefined };
  }

  async #record(differing: number): Promise<void> {
    const { store, clock, author, reason } = this.#options;
    const accepted = differing === 0 ? '' : `; ${differing} records differed, which was accepted`;
    const rebuilt = {
      type: 'ViewRebuilt',
      data: { view: VIEW_NAME, reason: `${reason}${accepted}` },
    } as const;
    const events = [newEvent(rebuilt, author, clock.now())];
    await store.append([{ stream: OPERATIONS_STREAM, expected: 'any', events }]);
  }
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

/** Whether a process leads a build now. */
export async function isBuildLed(coordination: Pick<Coordination, 'holder'>, clock: Clock): Promise<boolean> {
  const lease = await coordination.holder(BUILD_LEASE);
  return lease !== undefined && lease.expiresAtMs > clock.now();
}

async function takeLead({ coordination, holder, signal }: RebuildOptions): Promise<void> {
  const deadlineMs = performance.now() + MAX_LEASE_WAIT_MS;
  while (!(await coordination.acquire(BUILD_LEASE, holder, LEASE_MS))) {
    if (performance.now() > deadlineMs || signal.aborted) {
      throw new FuelError(
        'REFUSED',
        'another process is rebuilding this view: fuel projection status shows how far it is, and ' +
          'fuel projection rebuild transactions --join helps it',
      );
    }
    await pause(LEASE_CHECK_MS, signal);
  }
}
