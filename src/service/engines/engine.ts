import type { DirectoryRows } from '../../accounts/directory/rows/rows.ts';
import type { Clock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import type { SettingTable } from '../../base/config/setting.ts';
import type { Log } from '../../base/log.ts';
import type { Engines, PortName, Server, ServerKind, StoreName, StoreState } from './engines.ts';

/** What engines open, each on first use. */
export interface EnginePorts
  extends Pick<
    Engines,
    'store' | 'subscriptions' | 'view' | 'queue' | 'coordination' | 'rateWindows' | 'requests'
  > {
  directory(): DirectoryRows;
}

/** What an engine is opened with. */
export interface Opening {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Log;
  /** Opens with the first call, and returns the same with each other one. It is closed with the engines, the last one first. */
  once<T extends Closable>(open: () => T): () => T;
}

export interface Closable {
  close(): Promise<void>;
}

export interface OpenedEngine {
  /** Those that it serves. */
  readonly ports: Partial<EnginePorts>;
  state(store: StoreName): Promise<StoreState>;
}

/**
 * A server that can take the place of the embedded engine for some ports: all that the service knows of it. It is
 * selected by its setting; of several that are selected, the last one of the registry serves a port.
 */
export interface Engine extends ServerKind {
  readonly settings: SettingTable;
  readonly ports: readonly PortName[];
  /** Throws `CONFIG_INVALID` for what its driver does not take; connects to nothing. */
  assertSettings(config: Config): Promise<void>;
  /** Loads its driver; connects to nothing. */
  open(opening: Opening): Promise<OpenedEngine & { readonly server: Server }>;
}
