import type { Clock } from '../../base/clock.ts';
import type { Coordination } from '../../base/coordination/coordination.ts';
import { errorKind, reasonOf } from '../../base/errors.ts';
import { isolateFailures } from '../../base/isolate.ts';
import type { Log } from '../../base/log.ts';
import { world } from '../../base/world.ts';
import type { EventStore, SubscriptionBatch } from '../../event-store/event-store.ts';
import { follow, type Restart } from '../../event-store/follow.ts';
import type { Position } from '../../event-store/recorded-event.ts';
import { readSkipped, type SkippedEvents, skippedBy } from '../../event-store/skipped-events.ts';
import { anchorOf, continuesAfter } from '../../event-store/store-identity.ts';
import { put, type Tables, type Write } from '../../tables/tables.ts';
import { beginRows, madeFrom } from './progress.ts';
import { PROGRESS, type ProgressRow } from './tables.ts';
import {
  ACCOUNT_HISTORY,
  type ChangedAccount,
  changedBy,
  type RowsPlace,
  refusedWrites,
  writesOf,
} from './writes-of.ts';

export const ACCOUNTS_LEASE = 'accounts';
const LEASE_MS = 3_000;
const BATCH_SIZE = 2_000;
/** A batch that brings nothing is a heartbeat. The store yields one about every second, and more often after other events. */
const HEARTBEATS_EVERY_MS = 500;
/** While others record and no checkpoint moves, the place up to which the log was read is written this often. */
const REACHES_EVERY_MS = 100;

export interface AccountsFollowerOptions {
  readonly store: EventStore;
  readonly tables: Tables;
  readonly coordination: Coordination;
  readonly clock: Clock;
  readonly log: Log;
  /** Names this follower among those that compete for the lease. */
  readonly holder: string;
  readonly signal: AbortSignal;
}

/**
 * Applies the log to the rows of accounts until `signal` aborts. Of several followers the holder of the lease is active. Should
 * two ever be active at once, no row becomes older, and the one whose checkpoint is not the stored one starts again from
 * that. While an engine is unavailable it waits, then continues from the checkpoint. Rows of another store are rebuilt.
 */
export async function runAccountsFollower(options: AccountsFollowerOptions): Promise<void> {
  const { store, coordination, holder, log, signal } = options;
  let batches: RowsWriter | undefined;
  await follow({
    component: 'accounts',
    streams: ACCOUNT_HISTORY,
    batchSize: BATCH_SIZE,
    store,
    log,
    signal,
    lease: { coordination, lease: ACCOUNTS_LEASE, holder, ttlMs: LEASE_MS },
    async checkpoint() {
      const progress = await beginRows(options);
      batches = new RowsWriter(options, progress, await readSkipped(store));
      return continuesAfter(madeFrom(progress));
    },
    async handle(batch) {
      if (batches === undefined) throw new Error('a batch came before the checkpoint was read');
      return batches.write(batch);
    },
  });
}

/** A moment, and the end that the log had then. */
interface Moment {
  readonly atMs: number;
  readonly end: Position;
}

/** Writes one batch after the other, from a checkpoint on. */
class RowsWriter {
  readonly #options: Pick<AccountsFollowerOptions, 'store' | 'tables' | 'log'>;
  #progress: ProgressRow;
  #skipped: SkippedEvents;
  #writtenAtMs = Number.NEGATIVE_INFINITY;
  /** While the rows are behind: they are complete as of this moment once they have reached its end. */
  #awaited: Moment | undefined;

  constructor(
    options: Pick<AccountsFollowerOptions, 'store' | 'tables' | 'log'>,
    progress: ProgressRow,
    skipped: SkippedEvents,
  ) {
    this.#options = options;
    this.#progress = progress;
    this.#skipped = skipped;
  }

  async write(batch: SubscriptionBatch): Promise<'next' | Restart> {
    const arrivedAtMs = world.steadyMs();
    const { tables, store, log } = this.#options;
    const { events, checkpoint, position } = batch;
    const isIdle = events.length === 0 && checkpoint <= this.#progress.position;
    const everyMs = position > this.#progress.reached ? REACHES_EVERY_MS : HEARTBEATS_EVERY_MS;
    if (isIdle && arrivedAtMs - this.#writtenAtMs < everyMs) return 'next';
    if (events.some((event) => skippedBy(event) !== undefined)) this.#skipped = await readSkipped(store);
    const changed = changedBy(events);
    const place = { store, tables, skipped: this.#skipped };
    const { writes, closed } = await writesOf(changed, place);
    const anchor = anchorOf(events);
    const progress: ProgressRow = {
      ...this.#progress,
      position: Math.max(this.#progress.position, checkpoint),
      reached: Math.max(this.#progress.reached, position),
      anchor: anchor === undefined ? this.#progress.anchor : JSON.stringify(anchor),
      complete_at: (await this.#completeAt(batch, arrivedAtMs)) ?? this.#progress.complete_at,
    };
    const moved = put(PROGRESS, progress, { as: this.#progress });
    const isMoved = await this.#writeOrIsolate(changed, place, [...writes, moved]);
    if (!isMoved) return { restartBecause: 'another follower has written meanwhile' };
    for (const { id, unreadable } of closed)
      log.error({ account: id, ...unreadable }, 'account unreadable: nothing of it is served');
    this.#progress = progress;
    this.#writtenAtMs = arrivedAtMs;
    return 'next';
  }

  /** Returns the moment, by the clock of the tables, up to which the rows will have everything, if that is known. */
  async #completeAt(
    { caughtUp, position }: SubscriptionBatch,
    arrivedAtMs: number,
  ): Promise<number | undefined> {
    const { tables, store } = this.#options;
    if (caughtUp) {
      this.#awaited = undefined;
      const nowMs = await tables.now();
      return Math.floor(nowMs - (world.steadyMs() - arrivedAtMs));
    }
    const reached = this.#awaited !== undefined && position >= this.#awaited.end ? this.#awaited : undefined;
    if (reached !== undefined) this.#awaited = undefined;
    this.#awaited ??= { atMs: await tables.now(), end: await store.head() };
    return reached?.atMs;
  }

  /** Writes everything. An account whose rows the store refuses becomes unreadable, and the others are written. */
  async #writeOrIsolate(
    changed: readonly ChangedAccount[],
    place: RowsPlace,
    writes: readonly Write[],
  ): Promise<boolean> {
    const { tables, log } = this.#options;
    try {
      return (await tables.write(writes)).at(-1) === true;
    } catch (error) {
      if (errorKind(error) !== 'refused') throw error;
    }
    const refused = await isolateFailures(changed, async (some) => {
      await tables.write((await writesOf(some, place)).writes);
    });
    for (const { item, error } of refused) {
      const reason = reasonOf(error);
      log.error({ account: item.id, reason }, 'account unreadable: nothing of it is served');
      await tables.write(await refusedWrites(item, reason, tables));
    }
    return (await tables.write(writes.slice(-1))).at(-1) === true;
  }
}
