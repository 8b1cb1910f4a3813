import type { AccessRows } from '../../accounts/caller.ts';
import type { Clock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import type { Coordination } from '../../base/coordination/coordination.ts';
import type { Log } from '../../base/log.ts';
import type { EventStore, PersistentSubscriptions } from '../../event-store/event-store.ts';
import type { RateWindows } from '../../pull/edge/rate-windows/rate-windows.ts';
import type { RequestJournal } from '../../pull/request-journal.ts';
import type { TransactionsView } from '../../pull/view/transactions-view.ts';
import type { DeliveryQueue } from '../../push/queue/delivery-queue.ts';
import type { Tables } from '../../tables/tables.ts';

export type StoreName = 'store' | 'subscriptions' | 'view' | 'queue' | 'coordination' | 'accounts';
/** A port that an engine can serve: the log with its consumer groups, stores of tables, or shared rate windows. */
export type PortName = 'events' | 'tables' | 'rateWindows';

/**
 * The state of a store before it is opened. Opening a missing store creates it, and opening one of another version
 * updates it. Opening a read-only one leaves files beside it. A damaged one, and one that other users may access, is refused.
 */
export type StoreState = 'missing' | 'of another version' | 'read-only' | 'damaged' | 'current';

/** A kind of server, as far as it is known before one is reached. */
export interface ServerKind {
  /** The name in `/readyz` and in the log. */
  readonly name: string;
  /** The name for operators: `EventStoreDB or KurrentDB`. */
  readonly title: string;
  /** The setting with its address. Setting it selects the server. */
  readonly setting: string;
  /** The name of its check in `fuel doctor`. */
  readonly check: string;
  /** The oldest supported version, major and minor. */
  readonly oldestVersion: readonly [number, number];
  /** A note for `fuel transaction erase` about what the server keeps for some time. */
  readonly erasesLater?: string;
}

export interface EngineDescription {
  /** The name that the server gives itself, if its setting accepts several kinds. */
  readonly name?: string;
  readonly version: string;
}

/** A server, connected on first use. */
export interface Server {
  /** Resolves when the server answers. Rejects with `STORE_UNAVAILABLE` within two seconds if it does not. */
  readonly ping: () => Promise<void>;
  /**
   * Asks the server for its description. Rejects with `STORE_UNAVAILABLE` within some seconds if it does not answer.
   */
  readonly describe: () => Promise<EngineDescription>;
}

/** A server that this process depends on. */
export interface RemoteEngine extends ServerKind, Server {
  /** The ports that it serves in this process. */
  readonly serves: readonly PortName[];
  /** The address without credentials. */
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
  /** The rows of accounts and keys. */
  accounts(): Tables;
  /** The rows of accounts that requests read. */
  access(): AccessRows;
  requests(): RequestJournal;
  /** The rate windows of keys, either of this process alone or shared by all processes on a server. */
  rateWindows(): RateWindows;
  /** The stores that are files in the data directory. */
  readonly embedded: readonly StoreName[];
  /** The servers that hold the other stores. */
  readonly remote: readonly RemoteEngine[];
  /** Closes the opened stores in reverse order. */
  close(): Promise<void>;
}

/** Opens the engines that the configuration selects. `log` gets the lines about their availability. */
export type OpenEngines = (
  config: Config,
  clock: Clock,
  options?: { readonly log?: Log },
) => Promise<Engines>;
