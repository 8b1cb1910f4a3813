import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from './clock.ts';
import type { Config } from './config.ts';
import type { Coordination } from './coordination/coordination.ts';
import { openSqliteCoordination } from './coordination/sqlite.ts';
import type { DeliveryQueue } from './delivery/delivery-queue.ts';
import { openSqliteDeliveryQueue } from './delivery/sqlite.ts';
import type { EventStore, PersistentSubscriptions } from './event-store/event-store.ts';
import { openSqliteEventStore } from './event-store/sqlite.ts';
import { openSqliteSubscriptions } from './event-store/sqlite-subscriptions.ts';
import { openSqliteView } from './transactions-view/sqlite.ts';
import type { TransactionsView } from './transactions-view/transactions-view.ts';

/** The embedded files, by what they hold; each is one SQLite database in the data directory. */
export const EMBEDDED_FILES = {
  events: 'events.db',
  transactions: 'transactions.db',
  deliveries: 'deliveries.db',
  subscriptions: 'subscriptions.db',
  control: 'control.db',
} as const;

/** The name of the event store among the engines outside this process. */
export const EVENT_STORE = 'eventstoredb';

/** A server that this process depends on. */
export interface RemoteEngine {
  readonly name: typeof EVENT_STORE | 'mongodb';
  /** Resolves when it answers; rejects with `STORE_UNAVAILABLE` within two seconds where it does not. */
  readonly check: () => Promise<void>;
}

/** The stores behind the ports, as the configuration picks them. Each is opened when first asked for. */
export interface Engines {
  store(): EventStore;
  subscriptions(): PersistentSubscriptions;
  view(): TransactionsView;
  queue(): DeliveryQueue;
  coordination(): Coordination;
  /** None where everything is embedded. */
  readonly remote: readonly RemoteEngine[];
  /** Closes what was opened, in the reverse order. */
  close(): Promise<void>;
}

/** The only place that picks adapters. */
export async function openEngines(config: Config, clock: Clock): Promise<Engines> {
  const opened: { close(): Promise<void> }[] = [];
  const file = (name: string): { path: string; clock: Clock } => {
    mkdirSync(config.FUEL_DATA_DIR, { recursive: true, mode: 0o700 });
    return { path: join(config.FUEL_DATA_DIR, name), clock };
  };
  const once = <T extends { close(): Promise<void> }>(open: () => T): (() => T) => {
    let engine: T | undefined;
    return () => {
      if (engine === undefined) {
        engine = open();
        opened.push(engine);
      }
      return engine;
    };
  };
  const store = once(() => openSqliteEventStore(file(EMBEDDED_FILES.events)));
  return {
    store,
    subscriptions: once(() =>
      openSqliteSubscriptions({ ...file(EMBEDDED_FILES.subscriptions), store: store() }),
    ),
    queue: once(() => openSqliteDeliveryQueue(file(EMBEDDED_FILES.deliveries))),
    view: once(() => openSqliteView(file(EMBEDDED_FILES.transactions))),
    coordination: once(() => openSqliteCoordination(file(EMBEDDED_FILES.control))),
    remote: [],
    async close() {
      for (const engine of opened.reverse()) await engine.close();
    },
  };
}
