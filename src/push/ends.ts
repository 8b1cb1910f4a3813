import { type DeliveryEffect, deliveryEffect, keyIneligibleReason } from '../../projections/deliveries.ts';
import { readAccountEvent } from '../accounts/read-account-event.ts';
import { readKeys } from '../accounts/rows/read-rows.ts';
import { type Clock, steadyClock } from '../base/clock.ts';
import type { Coordination } from '../base/coordination/coordination.ts';
import type { Log } from '../base/log.ts';
import { ACCOUNT_STREAMS, type Environment } from '../domain/account-events.ts';
import type { EventStore, SubscriptionBatch } from '../event-store/event-store.ts';
import { follow } from '../event-store/follow.ts';
import type { Position, RecordedEvent } from '../event-store/recorded-event.ts';
import { readSkipped } from '../event-store/skipped-events.ts';
import {
  anchorOf,
  continuesAfter,
  type MadeFrom,
  mismatchOf,
  storeIdentity,
} from '../event-store/store-identity.ts';
import type { Tables } from '../tables/tables.ts';
import type { DeliveryQueue } from './queue/delivery-queue.ts';

/** The name of the follower, and of its lease and checkpoint. */
export const ENDS = 'ends';
const LEASE_MS = 5_000;
/** The least time between two checkpoints that nothing has happened between. */
const SAVE_MS = 1_000;

export interface EndsOptions {
  readonly store: EventStore;
  readonly queue: Pick<DeliveryQueue, 'change'>;
  /** The rows of accounts. */
  readonly rows: Pick<Tables, 'get'>;
  readonly coordination: Pick<Coordination, 'acquire' | 'release' | 'checkpoint' | 'moveCheckpoint'>;
  readonly environment: Environment;
  /** Names this follower among those that compete for the lease. */
  readonly holder: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/**
 * Ends the pending deliveries of keys that are switched off, and of webhooks that are removed or disabled, and forgets the
 * failures of webhooks that are enabled, until `signal` aborts. Applying an event again changes nothing. One of several followers
 * is active. It waits while a store is unavailable, and rejects with other errors.
 */
export async function followEnds(options: EndsOptions): Promise<void> {
  const { store, coordination, holder, log, signal } = options;
  const follower = new Ends(options);
  await follow({
    component: ENDS,
    store,
    streams: [ACCOUNT_STREAMS],
    log,
    signal,
    lease: { coordination, lease: ENDS, holder, ttlMs: LEASE_MS },
    checkpoint: () => follower.begin(),
    async handle(batch, until) {
      await follower.take(batch, until);
      return 'next';
    },
  });
}

class Ends {
  readonly #options: EndsOptions;
  #place: MadeFrom = { storeId: '', position: 0 };
  #saved = { position: -1, atMs: Number.NEGATIVE_INFINITY };

  constructor(options: EndsOptions) {
    this.#options = options;
  }

  /** Returns where to continue: at the start of the log if the checkpoint belongs to another one. */
  async begin(): Promise<Position> {
    const { store, coordination, clock, log } = this.#options;
    const storeId = await storeIdentity(store, clock);
    const found = await coordination.checkpoint(ENDS);
    const mismatch = found && (await mismatchOf(found, { store, storeId }));
    if (mismatch !== undefined)
      log.warn(`the checkpoint of the ends of deliveries ${mismatch}: every account event is read again`);
    this.#place = found === undefined || mismatch !== undefined ? { storeId, position: 0 } : found;
    this.#saved = { position: found?.position ?? -1, atMs: Number.NEGATIVE_INFINITY };
    return continuesAfter(this.#place);
  }

  async take({ events, checkpoint }: SubscriptionBatch, until: AbortSignal): Promise<void> {
    const applied = await applyEnds(events, this.#options, until);
    if (until.aborted) return;
    const position = Math.max(this.#place.position, checkpoint);
    this.#place = { ...this.#place, position, anchor: anchorOf(events) ?? this.#place.anchor };
    const nowMs = steadyClock.now();
    const isDue = applied > 0 || nowMs - this.#saved.atMs >= SAVE_MS;
    if (position <= this.#saved.position || !isDue) return;
    const { storeId, anchor } = this.#place;
    await this.#options.coordination.moveCheckpoint(ENDS, { storeId, position, anchor });
    this.#saved = { position, atMs: nowMs };
  }
}

type EndsParts = Pick<EndsOptions, 'store' | 'queue' | 'rows' | 'environment' | 'clock'>;

/** Applies events in their order until the signal aborts. Returns how many of them concern deliveries. */
export async function applyEnds(
  events: readonly RecordedEvent[],
  parts: EndsParts,
  until?: AbortSignal,
): Promise<number> {
  if (events.length === 0) return 0;
  const skipped = await readSkipped(parts.store);
  let applied = 0;
  for (const recorded of events) {
    if (until?.aborted) break;
    const read = readAccountEvent(recorded, skipped);
    const effect = read.ok ? deliveryEffect(read.event) : undefined;
    if (!read.ok || effect === undefined) continue;
    await apply({ ...effect, position: recorded.position, atMs: read.atMs }, parts);
    applied += 1;
  }
  return applied;
}

type Effect = DeliveryEffect & { readonly position: Position; readonly atMs: number };

async function apply(effect: Effect, parts: EndsParts): Promise<void> {
  const { queue, clock } = parts;
  const { kind, prefix, atMs, position } = effect;
  if (kind === 'enabled') {
    await queue.change({ kind: 'enabled', prefix, atMs }, clock.now());
    return;
  }
  const end = { kind: 'end lane', prefix, reason: effect.reason, before: position } as const;
  // Deliveries that were redelivered after the webhook was on again stay, although they are older than this end.
  const only = (await isOver(prefix, position, parts)) ? { redelivered: false } : {};
  await queue.change({ ...end, ...only }, clock.now());
}

/** True if the webhook is on again, or was ended again, since the end at this position. */
async function isOver(
  prefix: string,
  position: Position,
  { rows, environment }: EndsParts,
): Promise<boolean> {
  const found = (await readKeys(rows, [prefix])).get(prefix);
  if (found?.ended === undefined || found.ended.position < position) return false; // the rows are behind
  return found.ended.position > position || keyIneligibleReason(found.key, environment) === undefined;
}
