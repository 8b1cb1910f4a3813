import { Gauge, type Registry } from 'prom-client';
import { ACCOUNTS, KEYS } from '../../accounts/rows/tables.ts';
import { errorKind } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { aborted, pause } from '../../base/pause.ts';
import { world } from '../../base/world.ts';
import type { Environment } from '../../domain/account-events.ts';
import { occurredAtMs } from '../../event-store/codec.ts';
import type { GroupStatus } from '../../event-store/event-store.ts';
import { operationsOf } from '../../event-store/operations.ts';
import { VIEW_NAME } from '../../pull/view/projector.ts';
import { type StuckWebhook, StuckWebhooks } from '../../push/health/stuck-webhooks.ts';
import { type ShownBacklog, shownBacklog } from '../../push/held.ts';
import type { DeliveryReads } from '../../push/queue/delivery-queue.ts';
import type { Tables } from '../../tables/tables.ts';
import { FOLLOWERS, type Follower, type FollowerReads, progressOf, secondsBehind } from './followers.ts';

/** How often the stores are read, however often the metrics are scraped. */
const READ_EVERY_MS = 15_000;
const MAX_READ_MS = 10_000;
/** The number of readings kept: those of one hour. */
const READINGS_KEPT = 240;
/** The limit up to which a backlog is counted, which takes a few milliseconds. */
export const MAX_BACKLOG_COUNTED = 10_000;

/** The start of the help of each of these figures, since those of several processes must not be added up. */
export const SHARED = 'Shared, the same in every process:';

export interface SharedFigureParts extends FollowerReads {
  readonly queue: Pick<
    DeliveryReads,
    'backlog' | 'pendingLanes' | 'countIn' | 'dueLanes' | 'askedToWaitUntil'
  >;
  /** The tables with the rows of accounts. */
  readonly accounts: Pick<Tables, 'get' | 'find' | 'count'>;
  readonly environment: Environment;
  /** True if `fuel store backup` copies the events. Servers are backed up with their own tools. */
  readonly isBackedUp: boolean;
  readonly log: Log;
}

export interface Reading {
  readonly atMs: number;
  /** The lag in seconds by follower. Those that could not be read are left out. */
  readonly lag: Readonly<Record<string, number>>;
  /** Pending deliveries; `null` if they could not be read. */
  readonly pending: number | null;
}

/** The help of each gauge by its name, and how its value is computed from what was read. */
type Figures<T> = Readonly<Record<string, readonly [help: string, of: (read: T) => number]>>;
type FollowerFigures = GroupStatus & { readonly lag: number; readonly head: number };

const COUNTED = `counted up to ${MAX_BACKLOG_COUNTED}`;
interface AccountCounts {
  readonly disabledWebhooks: number;
  readonly unreadable: number;
}
const OF_ACCOUNTS: Figures<AccountCounts> = {
  fuel_webhooks_disabled: [
    `webhooks of active keys that are switched off, ${COUNTED}.`,
    (of) => of.disabledWebhooks,
  ],
  fuel_accounts_unreadable: [
    `accounts that are not served because one of their events can’t be read, ${COUNTED}.`,
    (of) => of.unreadable,
  ],
};
const OF_BACKLOG: Figures<ShownBacklog & { readonly nowMs: number }> = {
  fuel_deliveries_pending: [`deliveries not ended and not held, ${COUNTED}.`, (of) => of.pending],
  fuel_deliveries_held: [`deliveries whose account has no access, ${COUNTED}.`, (of) => of.held],
  fuel_deliveries_oldest_due_seconds: [
    'how long the oldest due delivery has been due. A receiver is slow if it is above 3,600.',
    ({ nowMs, nextDueAtMs = nowMs }) => Math.max(0, (nowMs - nextDueAtMs) / 1000),
  ],
  fuel_webhooks_failing: [`webhooks with a failure streak, ${COUNTED}.`, (of) => of.failingLanes],
};
const OF_STUCK: Figures<{ readonly found: readonly StuckWebhook[]; readonly nowMs: number }> = {
  fuel_webhooks_stuck_seconds: [
    'the longest time that a webhook has had a due delivery and no attempt, although it is on, its account has access and its receiver has not asked to wait.',
    ({ found, nowMs }) =>
      Math.max(0, nowMs - (found.find(({ isCertain }) => isCertain)?.sinceMs ?? nowMs)) / 1000,
  ],
};
const OF_FOLLOWER: Figures<FollowerFigures> = {
  fuel_follower_lag_seconds: [
    'age of the oldest event that a follower (accounts, transactions, deliveries, notices) has not processed.',
    (of) => of.lag,
  ],
  fuel_follower_position: [
    'the position up to which a follower has processed everything.',
    (of) => of.position,
  ],
  fuel_follower_parked_events: ['events that a follower parked.', (of) => of.parked],
};
const OF_VIEW: Figures<FollowerFigures> = {
  fuel_event_store_position: ['the end of the event log.', (of) => of.head],
  fuel_view_position: ['the position up to which the view has applied the log.', (of) => of.position],
};

/** Times in milliseconds; not a number where none is known. */
interface LastTimes {
  readonly backupAtMs: number;
  readonly verifiedAtMs: number;
}
const OF_TIMES: Figures<LastTimes> = {
  fuel_last_backup_timestamp_seconds: [
    'when fuel store backup last copied the embedded files, or else when the store began; NaN on engines, which have their own backups.',
    (of) => of.backupAtMs / 1000,
  ],
  fuel_last_proof_timestamp_seconds: [
    'when a nightly verification last ended without differences, or else when the store began.',
    (of) => of.verifiedAtMs / 1000,
  ],
};
/** Gauges of what the stores hold. They are NaN until they are read, and while their engine is unavailable. */
export function sharedFigures(registry: Registry) {
  const showAccounts = gauges(registry, OF_ACCOUNTS);
  const showBacklog = gauges(registry, OF_BACKLOG);
  const showStuck = gauges(registry, OF_STUCK);
  const showFollower = gauges(registry, OF_FOLLOWER, ['follower']);
  const showView = gauges(registry, OF_VIEW);
  const showTimes = gauges(registry, OF_TIMES);
  let stuckWebhooks: StuckWebhooks | undefined;
  const readings: Reading[] = [];

  async function read(parts: SharedFigureParts, signal: AbortSignal): Promise<void> {
    const until = AbortSignal.any([signal, world.timeoutSignal(MAX_READ_MS)]);
    const { queue, accounts: rows, log, clock } = parts;
    showAccounts(await known(countAccounts(parts), log, 'accounts'));
    showTimes(await known(lastTimes(parts), log, 'operations'));
    stuckWebhooks ??= new StuckWebhooks({ ...parts, rows });
    const lag: Record<string, number> = {};
    const nowMs = clock.now();
    const [backlog] = await Promise.all([
      known(shownBacklog({ queue, rows, nowMs }, { limit: MAX_BACKLOG_COUNTED }), log, 'backlog').then(
        (found) => {
          showBacklog(found && { ...found, nowMs });
          return found;
        },
      ),
      known(stuckWebhooks.look(), log, 'stuck webhooks').then((found) =>
        showStuck(found && { found, nowMs }),
      ),
      ...FOLLOWERS.map(async (follower) => {
        const { name } = follower;
        const found = await known(readFollower(parts, follower, until), log, name);
        showFollower(found, { follower: name });
        if (name === VIEW_NAME) showView(found);
        if (found !== undefined) lag[name] = found.lag;
      }),
    ]);
    const count = readings.push({ atMs: clock.now(), lag, pending: backlog?.pending ?? null });
    if (count > READINGS_KEPT) readings.shift();
  }

  return {
    /** The readings of the last hour, oldest first. */
    readings: readings as readonly Reading[],
    read,
    /** Reads everything about every 15 s until `signal` aborts. A scrape reads nothing from the stores. */
    async run(parts: SharedFigureParts, signal: AbortSignal): Promise<void> {
      const ended = aborted(signal);
      while (!signal.aborted) {
        await Promise.race([read(parts, signal), ended]);
        await pause(READ_EVERY_MS, signal);
      }
    },
  };
}

/** Makes gauges, and returns a function that sets them to what was read, or to NaN if nothing was. */
function gauges<T, L extends string = never>(registry: Registry, figures: Figures<T>, labelNames: L[] = []) {
  const made = Object.entries(figures).map(([name, [help, of]]) => {
    const gauge = new Gauge({ name, help: `${SHARED} ${help}`, labelNames, registers: [registry] });
    if (labelNames.length === 0) gauge.set(Number.NaN);
    return { gauge, of };
  });
  return (read: T | undefined, labels?: Record<L, string>): void => {
    for (const { gauge, of } of made) gauge.set({ ...labels }, read === undefined ? Number.NaN : of(read));
  };
}

async function countAccounts({ accounts }: Pick<SharedFigureParts, 'accounts'>): Promise<AccountCounts> {
  const [disabledWebhooks, unreadable] = await Promise.all([
    accounts.count(KEYS, { index: 'by_disabled' }, MAX_BACKLOG_COUNTED),
    accounts.count(ACCOUNTS, { index: 'by_unreadable' }, MAX_BACKLOG_COUNTED),
  ]);
  return { disabledWebhooks, unreadable };
}

async function lastTimes({ store, isBackedUp }: SharedFigureParts): Promise<LastTimes> {
  const { first, newest, verifiedAtMs } = await operationsOf(store);
  const beganAtMs = first === undefined ? Number.NaN : occurredAtMs(first);
  const backup = newest.find(({ type }) => type === 'BackupMade');
  const backupAtMs = backup === undefined ? beganAtMs : occurredAtMs(backup);
  return { backupAtMs: isBackedUp ? backupAtMs : Number.NaN, verifiedAtMs: verifiedAtMs ?? beganAtMs };
}

async function readFollower(
  parts: SharedFigureParts,
  { name, prefixes }: Follower,
  signal: AbortSignal,
): Promise<FollowerFigures> {
  const { position, parked } = await progressOf(parts, { name });
  const head = await parts.store.head();
  return { position, parked, head, lag: await secondsBehind(parts, { prefixes, after: position }, signal) };
}

/** Returns `undefined` for a figure that can't be read. Only a fault of the program is logged. */
async function known<T>(reading: Promise<T>, log: Log, figure: string): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    const isTimeout = error instanceof Error && ['AbortError', 'TimeoutError'].includes(error.name);
    if (!isTimeout && errorKind(error) === 'fault')
      log.error({ err: error, figure }, 'a figure of the metrics cannot be read');
    return undefined;
  }
}
