import { KEYS } from '../../accounts/rows/tables.ts';
import type { Clock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import { PROCESS_MAX_AGE_MS } from '../../base/coordination/coordination.ts';
import { readDisk } from '../../base/disk/disk.ts';
import { world } from '../../base/world.ts';
import type { Damage, EventStore } from '../../event-store/event-store.ts';
import { MAX_STUCK_MS, StuckWebhooks } from '../../push/health/stuck-webhooks.ts';
import { shownBacklog } from '../../push/held.ts';
import type { Engines, StoreName } from '../../service/engines/engines.ts';
import { MAX_BACKLOG_COUNTED } from '../../service/ops/shared-figures.ts';
import type { RunningProcess } from '../../service/service.ts';
import type { Tables } from '../../tables/tables.ts';
import { accountFigures, accountsWithoutContact, NO_ACCOUNTS } from '../accounts/account-figures.ts';
import { followerStatus } from '../answers/follower.ts';
import { newestOperations } from '../audit/newest-events.ts';

/** The most failing webhooks that are read: more than an operator looks at. */
export const MAX_FAILING = 200;
/** Doctor looks again after this time. A webhook that works has made an attempt by then. */
const LOOK_AGAIN_MS = 3_000;

/** The sources of facts: stores that doctor opens, or those of a running process. */
export interface FactSources {
  readonly config: Config;
  readonly clock: Clock;
  readonly engines: Engines;
  /** Returns a store; `undefined` if opening it would create or update it. */
  readonly find: <Name extends StoreName>(name: Name) => Promise<ReturnType<Engines[Name]> | undefined>;
  /** Returns the event store. Only checks that require it may call this. */
  readonly store: () => Promise<EventStore>;
  /** Returns the rows of accounts with all that the log has; `undefined` if the next start makes them. */
  readonly rows: () => Promise<Tables | undefined>;
  /** The process that asks about itself; `undefined` for doctor. */
  readonly process?: OwnProcess | undefined;
}

export interface OwnProcess extends Pick<RunningProcess, 'roles' | 'readiness' | 'disk'> {
  /** Returns the damage that the last nightly verification found. */
  readonly lastDamage: () => readonly Damage[];
}

/** The facts that the checks judge by. Each read rejects if its store is unavailable. */
export type Facts = FactSources & FactReads;
export type FactReads = ReturnType<typeof factReads>;

const nothing = async () => undefined;
const none = async () => [];
/** Stand for stores that are not there yet. */
const NO_VIEW = { checkpoint: nothing, parked: none, countParked: async () => 0 };
const NO_SUBSCRIPTIONS = { status: nothing, parked: none };
const NO_ROWS = { get: none, find: none, count: async () => 0 };
const NO_COORDINATION = { holder: nothing, live: none, checkpoint: nothing };

/** The reads of everything that a check may need from more than one place. Each call reads anew. */
export function factReads({ config, clock, find, store, rows, process }: FactSources) {
  const coordination = async () => (await find('coordination')) ?? NO_COORDINATION;
  let looks: StuckWebhooks | undefined;
  return {
    disk: async () => (process === undefined ? readDisk(config.FUEL_DATA_DIR) : process.disk?.()),
    readiness: async () => process?.readiness(),
    followers: async () =>
      followerStatus(
        {
          clock,
          store: await store(),
          view: (await find('view')) ?? NO_VIEW,
          subscriptions: (await find('subscriptions')) ?? NO_SUBSCRIPTIONS,
          coordination: await coordination(),
          accounts: (await find('accounts')) ?? NO_ROWS,
        },
        { glance: process !== undefined },
      ),
    /** Generations of the view that are no longer served and not removed yet. */
    formerViews: async () => (await find('view'))?.leaving() ?? [],
    processes: async () => (await coordination()).live(PROCESS_MAX_AGE_MS),
    accounts: async () => {
      const accounts = await rows();
      return accounts === undefined ? NO_ACCOUNTS : accountFigures(accounts);
    },
    /** Accounts with a webhook whose notices are mailed to nobody. */
    withoutContact: async () => {
      const accounts = await rows();
      return accounts === undefined ? [] : accountsWithoutContact(accounts);
    },
    backlog: async () => {
      const parts = { queue: await find('queue'), rows: (await rows()) ?? NO_ROWS, nowMs: clock.now() };
      const { queue } = parts;
      return queue && shownBacklog({ ...parts, queue }, { limit: MAX_BACKLOG_COUNTED });
    },
    /** Webhooks that fail and are not switched off, the longest streak first. */
    failing: async () => {
      const [streaks, accounts] = [await (await find('queue'))?.failingLanes(MAX_FAILING), await rows()];
      if (streaks === undefined || accounts === undefined) return [];
      const prefixes = streaks.map(({ prefix }) => prefix);
      const found = await accounts.get(KEYS, prefixes, ['prefix', 'webhook']);
      const active = new Set(found.flatMap(({ prefix, webhook }) => (webhook === 'active' ? [prefix] : [])));
      return streaks.filter(({ prefix }) => active.has(prefix));
    },
    /** Webhooks that may be sent to, and have had a due delivery and no attempt for too long, the longest first. */
    stuck: async () => {
      const queue = await find('queue');
      if (queue === undefined) return [];
      const of = { queue, rows: (await rows()) ?? NO_ROWS, environment: config.FUEL_ENVIRONMENT, clock };
      looks ??= new StuckWebhooks(of);
      const isLong = ({ sinceMs }: { readonly sinceMs: number }) => clock.now() - sinceMs > MAX_STUCK_MS;
      const found = (await looks.look()).filter(isLong);
      if (process !== undefined || found.length === 0) return found.filter(({ isCertain }) => isCertain);
      await world.sleep(LOOK_AGAIN_MS);
      return (await looks.look()).filter((each) => isLong(each) && each.isCertain);
    },
    /** The newest events of the stream `operations`, and the newest of each type, newest first. */
    operations: async () => newestOperations(await store()),
    /** Damaged events that the last nightly verification of this process found. */
    damage: async () => process?.lastDamage() ?? [],
  };
}
