import type { Clock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import type { SettingTable } from '../../base/config/setting.ts';
import type { Log } from '../../base/log.ts';
import type { OpenTables, StorePlan } from '../../tables/tables.ts';
import type { Engines, PortName, Server, ServerKind, StoreState } from './engines.ts';

/** The ports that an engine opens, each on first use. */
export interface EnginePorts {
  readonly events: Pick<Engines, 'store' | 'subscriptions'>;
  /** Opens a store with each call. The caller closes it. */
  readonly tables: OpenTables;
  readonly rateWindows: Engines['rateWindows'];
}

/** A store as an engine knows it: one of the log, or a plan of tables. */
export type KeptStore = 'events' | 'subscriptions' | StorePlan;

/** Everything that an engine needs in order to open. */
export interface Opening {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Log;
  /** Given by those who only read: called with an embedded file that is missing, which is not made but read as empty. */
  readonly onMissing?: ((file: string) => void) | undefined;
  /** Makes a function that opens something at its first call. It is closed with the engines, the last opened first. */
  once<T extends Closable>(open: () => T): () => T;
}

export interface Closable {
  close(): Promise<void>;
}

export interface OpenedEngine {
  /** The ports that it serves. */
  readonly ports: Partial<EnginePorts>;
  state(store: KeptStore): Promise<StoreState>;
}

/**
 * A server that can replace the embedded engine for some ports, as far as the service knows it. It is selected by its
 * setting. If several are selected, the last one in the registry serves a port.
 */
export interface Engine extends ServerKind {
  readonly settings: SettingTable;
  readonly ports: readonly PortName[];
  /** Throws `CONFIG_INVALID` for settings that its driver rejects. Does not connect. */
  assertSettings(config: Config): Promise<void>;
  /** Loads its driver. Does not connect yet. */
  open(opening: Opening): Promise<OpenedEngine & { readonly server: Server }>;
}
