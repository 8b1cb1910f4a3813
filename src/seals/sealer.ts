import { type Clock, steadyClock } from '../base/clock.ts';
import type { Coordination } from '../base/coordination/coordination.ts';
import { FuelError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { SEALS_STREAM } from '../domain/operations-events.ts';
import type { EventStore, SubscriptionBatch } from '../event-store/event-store.ts';
import { follow } from '../event-store/follow.ts';
import { newEvent } from '../event-store/new-event.ts';
import { operationsOf } from '../event-store/operations.ts';
import type { Position } from '../event-store/recorded-event.ts';
import type { CheckpointSigner } from './checkpoint.ts';
import { type HashedEvent, hashed, LeafOrder } from './leaves.ts';
import type { TreeEdge } from './merkle-tree.ts';
import { lastSeal, packPrints, printOf, treeStartBefore } from './seals.ts';

export const SEALER_LEASE = 'sealer';
const LEASE_MS = 12_000;
const AUTHOR = { actor: 'system', command: 'seal' };
const LIMITS = {
  /**
   * The leaves after which a seal is made; a seal covers at most one batch more. Its event has some ten bytes for each.
   */
  leaves: 10_000 - 500,
  withinMs: 60_000,
};

export interface SealerOptions {
  readonly store: EventStore;
  readonly coordination: Pick<Coordination, 'acquire' | 'release'>;
  readonly signer: CheckpointSigner;
  readonly holder: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Different limits, for tests. */
  readonly limits?: Partial<typeof LIMITS>;
}

/**
 * Seals the log until the signal aborts: appends `LogSealed` with the signed root of the tree over the log, at most a
 * minute or 10,000 events after an event was recorded. Of several sealers one is active. While a store is unavailable
 * it waits. Rejects if the newest seal can't be read, since nothing can be sealed after it.
 */
export async function runSealer(options: SealerOptions): Promise<void> {
  const { store, coordination, holder, log, signal } = options;
  let sealer: Sealer | undefined;
  await follow({
    component: 'sealer',
    store,
    streams: [],
    unparsed: true,
    log,
    signal,
    lease: { coordination, lease: SEALER_LEASE, holder, ttlMs: LEASE_MS },
    async checkpoint() {
      sealer = new Sealer(options);
      return await sealer.begin();
    },
    handle: async (batch) =>
      (await sealer?.take(batch)) === false ? { restartBecause: 'another sealer was faster' } : 'next',
  });
}

/** Seals the log from one seal in the store on, until another sealer is faster or a store is unavailable. */
class Sealer {
  readonly #options: SealerOptions;
  #edge: TreeEdge | undefined;
  /** The events that were read and are not sealed yet. */
  #waiting: HashedEvent[] = [];
  /** The size of the newest seal. Some of its leaves may be read again. */
  #sealedSize = 0;
  #sealRevision: number | undefined;
  /** The time at which the first waiting event arrived. Events of the stream `seals` don't count: they alone cause no seal. */
  #sinceMs: number | undefined;

  constructor(options: SealerOptions) {
    this.#options = options;
  }

  /** Returns the position after which to read. */
  async begin(): Promise<Position> {
    const { store } = this.#options;
    const last = await lastSeal(store);
    const { edge, position } = await treeStartBefore(store);
    this.#edge = edge;
    this.#sealedSize = last?.size ?? 0;
    this.#sealRevision = last?.recorded.revision;
    return position;
  }

  /** Takes a batch, and seals if it is time. Returns false if another sealer was faster. */
  async take({ events, caughtUp }: SubscriptionBatch): Promise<boolean> {
    for (const event of events) {
      this.#waiting.push(hashed(event));
      if (event.stream !== SEALS_STREAM) this.#sinceMs ??= steadyClock.now();
    }
    const { leaves, withinMs } = { ...LIMITS, ...this.#options.limits };
    const isOld = this.#sinceMs !== undefined && steadyClock.now() - this.#sinceMs >= withinMs;
    if (this.#waiting.length < leaves && !(caughtUp && isOld)) return true;
    return await this.#seal();
  }

  async #seal(): Promise<boolean> {
    const { store, signer, clock } = this.#options;
    const edge = this.#edge as TreeEdge;
    // An erasure is recorded before its events disappear, so the gaps read now name every missing event.
    const { gaps } = await operationsOf(store);
    const order = new LeafOrder(edge.size, gaps);
    const leaves = order.take(this.#waiting);
    this.#waiting = [];
    this.#sinceMs = undefined;
    for (const { hash } of leaves) edge.append(hash);
    const last = leaves.at(-1);
    if (last === undefined || edge.size <= this.#sealedSize) return true; // all of these are sealed already
    const { stream, revision } = last;
    const { size, root } = edge;
    const data = {
      size,
      root,
      checkpoint: signer.sign(edge),
      last: { stream, revision },
      edge: [...edge.roots],
      leaves: packPrints(
        leaves.filter(({ index }) => index >= this.#sealedSize).map((leaf) => printOf(leaf)),
      ),
    };
    const event = newEvent({ type: 'LogSealed', data }, AUTHOR, clock.now());
    const expected = this.#sealRevision ?? 'none';
    const [result] = await store.append([{ stream: SEALS_STREAM, expected, events: [event] }]);
    if (result?.kind === 'erased') throw new FuelError('REFUSED', `the stream ${SEALS_STREAM} was deleted`);
    if (result?.kind !== 'appended') return false;
    this.#sealedSize = size;
    this.#sealRevision = result.revision;
    return true;
  }
}
