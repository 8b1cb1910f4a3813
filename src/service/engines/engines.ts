import type { StoredDirectory } from '../../accounts/directory/rows/stored-directory.ts';
import type { Clock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import type { Coordination } from '../../base/coordination/coordination.ts';
import type { Log } from '../../base/log.ts';
import type { EventStore, PersistentSubscriptions } from '../../event-store/event-store.ts';
import type { RateWindows } from '../../pull/edge/rate-windows/rate-windows.ts';
import type { RequestJournal } from '../../pull/request-journal.ts';
import type { TransactionsView } from '../../pull/view/transactions-view.ts';
import type { DeliveryQueue } from '../../push/queue/delivery-queue.ts';

export type StoreName = 'store' | 'subscriptions' | 'view' | 'queue' | 'coordination' | 'directory';
export type PortName = StoreName | 'rateWindows' | 'requests';

/**
 * Of a store before it is opened: opening one that is missing makes it, one of another version updates it, and one that
 * this user may only read leaves files beside it; one that is not this user's alone is refused. Opening a damaged one that is recreated puts it aside.
 */
export type StoreState = 'missing' | 'of another version' | 'read-only' | 'damaged' | 'current';

/** What is known of a server before one is reached. */
export interface ServerKind {
  /** In `/readyz` and in the log. */
  readonly name: string;
  /** For operators: `EventStoreDB or KurrentDB`. */
  readonly title: string;
  /** The setting that selects it by being set: its address. */
  readonly setting: string;
  /** How `fuel doctor` calls the check of it, and what the service keeps there. */
  readonly check: string;
  readonly holds: string;
  /** Major and minor. */
  readonly oldestVersion: readonly [number, number];
  /** How far its clock may be behind because of the way in which it tells the time. */
  readonly clockStepMs?: number;
  /** To be said after `fuel transaction erase`: what it keeps nevertheless. */
  readonly erasesLater?: string;
}

export interface EngineDescription {
  /** What the server calls itself, where one setting is for several kinds. */
  readonly name?: string;
  readonly version: string;
  /** Its clock, milliseconds. */
  readonly clockMs: number;
}

/** A server, connected on first use. */
export interface Server {
  /** Resolves when it answers; rejects with `STORE_UNAVAILABLE` within two seconds if it does not. */
  readonly ping: () => Promise<void>;
  /** What it says of itself. Rejects with `STORE_UNAVAILABLE` within some seconds if it does not answer. */
  readonly describe: () => Promise<EngineDescription>;
}

/** A server that this process depends on. */
export interface RemoteEngine extends ServerKind, Server {
  /** What it serves in this process. */
  readonly serves: readonly PortName[];
  /** Without credentials. */
  readonly address: string;
}

/** The stores behind the ports, as the configuration selects them. Each opens on first use. */
export interface Engines {
  state(name: StoreName): Promise<StoreState>;
  store(): EventStore;
  subscriptions(): PersistentSubscriptions;
  view(): TransactionsView;
  queue(): DeliveryQueue;
  coordination(): Coordination;
  directory(): StoredDirectory;
  requests(): RequestJournal;
  /** The rate windows of keys: in the memory that threads share, if any; all processes share those of a server. */
  rateWindows(memory?: SharedArrayBuffer): RateWindows;
  /** The stores that are files of the data directory. */
  readonly embedded: readonly StoreName[];
  /** The servers that have the others. */
  readonly remote: readonly RemoteEngine[];
  /** Closes the open ones in reverse order. */
  close(): Promise<void>;
}

/** Opens what the configuration selects. `log` gets the lines about engines that become unavailable or available again. */
export type OpenEngines = (config: Config, clock: Clock, log?: Log) => Promise<Engines>;
