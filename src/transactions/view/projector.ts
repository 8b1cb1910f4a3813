import { RENDERING_VERSION } from '../../../projections/transactions.ts';
import type { Clock } from '../../clock.ts';
import type { Coordination } from '../../coordination/coordination.ts';
import { whileHolding } from '../../coordination/while-holding.ts';
import { TRANSACTION_STREAMS } from '../../domain/transaction-events.ts';
import { FuelError } from '../../errors.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { assertCheckpoint, storeIdentity } from '../../event-store/store-identity.ts';
import type { Log } from '../../log.ts';
import { pause } from '../../pause.ts';
import { retryWhileUnavailable } from '../../retry.ts';
import { projectEvent } from '../project-event.ts';
import { applyOrPark } from './apply-or-park.ts';
import type { Checkpoint } from './checkpoint.ts';
import { SEGMENT_EVENTS } from './segments.ts';
import type { TransactionsView } from './transactions-view.ts';

export const PROJECTOR_LEASE = 'projector-transactions';
export const VIEW_NAME = 'transactions';

const LEASE_MS = 3_000;
const STANDBY_CHECK_MS = 500;

export interface ProjectorOptions {
  readonly store: EventStore;
  readonly view: TransactionsView;
  readonly coordination: Coordination;
  readonly clock: Clock;
  readonly log: Log;
  /** Names this projector among those that compete for the lease. */
  readonly holder: string;
  readonly signal: AbortSignal;
  /** How long events are collected for the next write once the projector has caught up, where each write is a round trip. */
  readonly gatherMs?: number;
  /** Called when the served records are of an older rendering: a new view must be built. This one is served until then. */
  readonly onOlderRendering?: () => void;
}

/**
 * Applies the log to the transactions view until `signal` aborts. Of several projectors the holder of the lease is
 * active and the others are on standby; one that is killed is replaced within 4 s. Should two ever be active at once, the
 * revisions of the rows keep the view right. While an engine is unavailable it waits, then continues from the checkpoint.
 * Rejects with `STORE_MISMATCH` when the view was made from another store, and with the stores' other errors.
 */
export async function runProjector(options: ProjectorOptions): Promise<void> {
  const { coordination, holder, signal, log } = options;
  while (!signal.aborted)
    await retryWhileUnavailable((available) => takeTurn(options, available), {
      log,
      signal,
      component: 'projector',
    });
  try {
    await coordination.release(PROJECTOR_LEASE, holder);
  } catch (error) {
    log.warn({ err: error }, 'projector could not release its lease: it expires within seconds');
  }
}

/** Works while it holds the lease, or waits a moment on standby. */
async function takeTurn(options: ProjectorOptions, available: () => void): Promise<void> {
  const { coordination, holder, signal, log } = options;
  if (await coordination.acquire(PROJECTOR_LEASE, holder, LEASE_MS)) {
    log.info({ holder }, 'projector is active');
    await projectWhileHolding(options, available);
  } else {
    available();
    await pause(STANDBY_CHECK_MS, signal);
  }
}

async function projectWhileHolding(options: ProjectorOptions, available: () => void): Promise<void> {
  const { coordination, holder, signal, log } = options;
  // Another projector may hold it by then, so this one stops and tries to acquire it again.
  const onMissed = (error: unknown, endWork: () => void): void => {
    if (error !== undefined) {
      log.warn({ err: error }, 'projector could not renew its lease: it stops until it has the lease again');
    }
    endWork();
  };
  const held = { coordination, lease: PROJECTOR_LEASE, holder, ttlMs: LEASE_MS, signal, onMissed };
  await whileHolding(held, async (until) => {
    while (!until.aborted) await project(options, until, available);
  });
  if (!signal.aborted) log.warn({ holder }, 'projector lost its lease: on standby');
}

/** Follows the log from the view's checkpoint; returns when `until` aborts or the view was reset. */
async function project(options: ProjectorOptions, until: AbortSignal, available: () => void): Promise<void> {
  const { store, view, gatherMs = 0 } = options;
  const { generation, position: after, rendering } = await prepareView(options);
  if (rendering < RENDERING_VERSION) options.onOlderRendering?.();
  const batches = store.subscribe({ prefixes: [TRANSACTION_STREAMS], after, signal: until });
  let from = after;
  let noted = 0;
  for await (const batch of batches) {
    const beganAtMs = performance.now();
    const changes = batch.events.map(projectEvent);
    const parked = await applyOrPark<'reset'>(changes, (some, isWhole) =>
      view.apply(some, { generation, position: isWhole ? batch.checkpoint : from }),
    );
    available();
    from = batch.checkpoint;
    if (parked === 'reset') return;
    noted += batch.events.length;
    if (noted >= SEGMENT_EVENTS) {
      await view.noteBound(batch.checkpoint);
      noted = 0;
    }
    for (const { parkedAtMs: _, ...event } of parked) {
      options.log.error(event, 'event parked: see fuel projection parked');
    }
    const leftMs = beganAtMs + gatherMs - performance.now();
    if (batch.caughtUp && leftMs > 0) await pause(leftMs, until);
  }
}

/**
 * The checkpoint to continue from. A view without one is reset. Throws `STORE_MISMATCH` for a checkpoint of another
 * store, or one ahead of the store's end, and `STORE_NEWER` for one of a newer rendering.
 */
export async function prepareView(
  options: Pick<ProjectorOptions, 'store' | 'view' | 'clock'>,
): Promise<Checkpoint> {
  const { store, view, clock } = options;
  const storeId = await storeIdentity(store, clock);
  const checkpoint = await view.checkpoint();
  if (checkpoint === undefined) return view.reset(storeId, await store.head());
  assertRendering(checkpoint);
  await assertCheckpoint(checkpoint, { store, storeId }, VIEW_NAME);
  return checkpoint;
}

function assertRendering({ rendering }: Checkpoint): void {
  if (rendering <= RENDERING_VERSION) return;
  throw new FuelError(
    'STORE_NEWER',
    `the records of ${VIEW_NAME} have the rendering ${rendering}, newer than ${RENDERING_VERSION}, which this version ` +
      'of the service writes: run the newer version',
  );
}
