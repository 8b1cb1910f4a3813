import type { StoredDirectory } from '../../accounts/directory/rows/stored-directory.ts';
import type { Clock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import type { Coordination } from '../../base/coordination/coordination.ts';
import type { Log } from '../../base/log.ts';
import type { EventStore, PersistentSubscriptions, Position } from '../../event-store/event-store.ts';
import type { RateWindows } from '../../pull/edge/rate-windows/rate-windows.ts';
import type { TransactionsView } from '../../pull/view/transactions-view.ts';
import type { DeliveryQueue } from '../../push/queue/delivery-queue.ts';
import type { RemoteEngine } from './engine-health.ts';

export type StoreName = 'store' | 'subscriptions' | 'view' | 'queue' | 'coordination' | 'directory';

/**
 * Of a store before it is opened: opening one that is missing makes it, one of another version updates it, and one that
 * this user may only read leaves files beside it; one that is not this user's alone is refused. Opening a damaged one that is recreated puts it aside.
 */
export type StoreState = 'missing' | 'of another version' | 'read-only' | 'damaged' | 'current';

/** The stores behind the ports, as the configuration selects them. Each opens on first use. */
export interface Engines {
  state(name: StoreName): Promise<StoreState>;
  store(): EventStore;
  subscriptions(): PersistentSubscriptions;
  /** Where the log ends, read on the calling thread; `undefined` where a server has the log. */
  readonly endNow: (() => Position) | undefined;
  view(): TransactionsView;
  queue(): DeliveryQueue;
  coordination(): Coordination;
  directory(): StoredDirectory;
  /** The rate windows of keys: in the memory that threads share, if any; all processes share those of a remote engine. */
  rateWindows(memory?: SharedArrayBuffer): RateWindows;
  /** Empty if everything is embedded. */
  readonly remote: readonly RemoteEngine[];
  /** Closes the open ones in reverse order. */
  close(): Promise<void>;
}

/** Opens what the configuration selects. `log` gets the lines about engines that become unavailable or available again. */
export type OpenEngines = (config: Config, clock: Clock, log?: Log) => Promise<Engines>;
