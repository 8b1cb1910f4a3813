import { RENDERING_VERSION } from '../../../projections/transactions.ts';
import { type Clock, steadyClock } from '../../base/clock.ts';
import type { Coordination } from '../../base/coordination/coordination.ts';
import { errorKind, FuelError, reasonOf } from '../../base/errors.ts';
import { isolateFailures } from '../../base/isolate.ts';
import type { Log } from '../../base/log.ts';
import { pause } from '../../base/pause.ts';
import { TRANSACTION_STREAMS } from '../../domain/transaction-events.ts';
import type { EventStore, SubscriptionBatch } from '../../event-store/event-store.ts';
import { follow } from '../../event-store/follow.ts';
import {
  anchorOf,
  assertCheckpoint,
  continuesAfter,
  storeIdentity,
} from '../../event-store/store-identity.ts';
import { changesOf, type ViewChange } from '../../records/project-event.ts';
import type { Checkpoint, ParkedTransactionEvent } from './checkpoint.ts';
import type { TransactionsView, ViewWriter } from './transactions-view.ts';

export const PROJECTOR_LEASE = 'projector-transactions';
export const VIEW_NAME = 'transactions';

const LEASE_MS = 3_000;
/**
 * The streams that a view follows, and the most events of one commit. The more events a commit has, the less often the
 * pages of the indexes are written.
 */
export const FOLLOWED = { streams: [TRANSACTION_STREAMS], batchSize: 2_000 };

export interface ProjectorOptions {
  readonly store: EventStore;
  readonly view: TransactionsView;
  readonly coordination: Coordination;
  readonly clock: Clock;
  readonly log: Log;
  /** Names this projector among those that compete for the lease. */
  readonly holder: string;
  readonly signal: AbortSignal;
  /** How long events are collected for the next write once the projector has caught up, since each write is a round trip. */
  readonly gatherMs?: number;
  /** Called when the served records are of an older rendering. They are served until a new view was built. */
  readonly onOlderRendering?: () => void;
}

/**
 * Applies the log to the transactions view until `signal` aborts. Of several projectors the holder of the lease is
 * active and the others are on standby; one that is killed is replaced within 4 s. Should two ever be active at once, the
 * revisions of the rows keep the view right. While an engine is unavailable it waits, then continues from the checkpoint.
 * Rejects with `STORE_MISMATCH` when the view was made from another store, and with the stores' other errors.
 */
export async function runProjector(options: ProjectorOptions): Promise<void> {
  const { store, view, coordination, holder, log, signal, gatherMs = 0, onOlderRendering } = options;
  let generation = 0;
  await follow({
    ...FOLLOWED,
    component: 'projector',
    store,
    log,
    signal,
    lease: { coordination, lease: PROJECTOR_LEASE, holder, ttlMs: LEASE_MS },
    async checkpoint() {
      const checkpoint = await prepareView(options);
      if (checkpoint.rendering < RENDERING_VERSION) onOlderRendering?.();
      generation = checkpoint.generation;
      return continuesAfter(checkpoint);
    },
    async handle(batch, until) {
      const beganAtMs = steadyClock.now();
      const parked = await applyBatch({ store, view }, generation, batch);
      if (parked === 'reset') return { restartBecause: 'the view was reset' };
      for (const { parkedAtMs: _, ...event } of parked) {
        log.error(event, 'event parked: see fuel projection parked');
      }
      const leftMs = beganAtMs + gatherMs - steadyClock.now();
      if (batch.caughtUp && leftMs > 0) await pause(leftMs, until);
      return 'next';
    },
  });
}

/**
 * Applies the next events of the log to a generation of the view. A change that its store refuses is parked with the
 * reason, and the others are applied; until then the checkpoint does not move. Returns what was parked.
 */
export async function applyBatch(
  {
    store,
    view,
  }: { readonly store: Pick<EventStore, 'readStreams'>; readonly view: Pick<ViewWriter, 'apply'> },
  generation: number,
  { events, checkpoint }: Pick<SubscriptionBatch, 'events' | 'checkpoint'>,
): Promise<readonly ParkedTransactionEvent[] | 'reset'> {
  const changes = await changesOf(store, events);
  const whole = { generation, position: checkpoint, anchor: anchorOf(events) };
  try {
    return await view.apply(changes, whole);
  } catch (error) {
    if (errorKind(error) !== 'refused') throw error;
  }
  const parked: ParkedTransactionEvent[] = [];
  const refused = await isolateFailures(changes, async (some) => {
    const applied = await view.apply(some, { generation, position: 0 }); // moves the checkpoint nowhere
    if (applied !== 'reset') for (const event of applied) parked.push(event);
  });
  const unstorable = refused.map(({ item, error }) => parkedChange(item, reasonOf(error)));
  const applied = await view.apply(unstorable, whole);
  return applied === 'reset' ? applied : [...parked, ...applied];
}

function parkedChange(change: ViewChange, reason: string): ViewChange {
  if ('parkReason' in change) return change;
  const { position, stream, type } = change;
  return { position, stream, type, revision: change.change.revision, parkReason: reason };
}

/**
 * Returns the checkpoint to continue from. A view without one is reset. Throws `STORE_MISMATCH` for a checkpoint of another
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
      'of the service writes. Run the newer version',
  );
}
