import { StoredDirectory } from '../accounts/directory/rows/stored-directory.ts';
import { keysFor } from '../accounts/master-key.ts';
import { addressOf } from '../accounts/moved-store.ts';
import type { Clock } from '../base/clock.ts';
import { type Config, configReader } from '../base/config/config.ts';
import { reasonOf } from '../base/errors.ts';
import { type Log, silentLog } from '../base/log.ts';
import type { Engine, Opening } from '../service/engines/engine.ts';
import type { Engines, PortName, RemoteEngine, StoreName } from '../service/engines/engines.ts';
import { eventStoreDb } from './eventstoredb/engine.ts';
import { mongoDb } from './mongodb/engine.ts';
import { openEmbedded } from './sqlite/engine.ts';

const STORES: readonly StoreName[] = ['store', 'subscriptions', 'view', 'queue', 'coordination', 'directory'];

/** What opens engines, and reads the settings of a service that can have these servers. */
export function engineRegistry(servers: readonly Engine[]) {
  const selected = ({ ofEngines }: Config) =>
    servers.filter(({ setting }) => ofEngines[setting] !== undefined);
  return {
    ...configReader(Object.assign({}, ...servers.map(({ settings }) => settings))),
    servers,
    /** The settings that select a server for a port, as a message names them. */
    settingsFor: (port: PortName): string =>
      servers
        .filter(({ ports }) => ports.includes(port))
        .map(({ setting }) => setting)
        .join(' or '),
    /**
     * Each port is served by the last server that is selected and can serve it, and by the embedded engine where there is
     * none. `log` gets the lines about engines that become unavailable or available again; commands have none.
     */
    openEngines: (config: Config, clock: Clock, log: Log = silentLog): Promise<Engines> =>
      open(selected(config), { config, clock, log }),
    /** What the drivers say against the engines' settings, as lines that begin with the setting; connects to none. */
    async faultsOfEngines(config: Config): Promise<string[]> {
      const faults: string[] = [];
      for (const server of selected(config)) {
        await server.assertSettings(config).catch((error: unknown) => faults.push(reasonOf(error)));
      }
      return faults;
    },
  };
}

export type Registry = ReturnType<typeof engineRegistry>;

/** The only list of engines. The embedded one is there always. */
export const registry = engineRegistry([eventStoreDb, mongoDb]);
export const { servers, settingsFor, openEngines, loadConfig, showConfig, unknownSettings } = registry;

async function open(servers: readonly Engine[], given: Omit<Opening, 'once'>): Promise<Engines> {
  const { config } = given;
  const stack = new AsyncDisposableStack();
  const once: Opening['once'] = (open) => {
    let opened: ReturnType<typeof open> | undefined;
    return () => {
      opened ??= stack.adopt(open(), (each) => each.close());
      return opened;
    };
  };
  const opening: Opening = { ...given, once };
  const serving = (port: PortName) => servers.findLast(({ ports }) => ports.includes(port));
  const embedded = openEmbedded(opening);
  let ports = embedded.ports;
  const remote: RemoteEngine[] = [];
  const stateOf = new Map<StoreName, Engines['state']>();
  for (const engine of servers) {
    const serves = engine.ports.filter((port) => serving(port) === engine);
    if (serves.length === 0) continue;
    const { server, ...opened } = await engine.open(opening);
    ports = { ...ports, ...opened.ports };
    for (const store of STORES.filter((name) => serves.includes(name))) stateOf.set(store, opened.state);
    remote.push({ ...engine, ...server, serves, address: addressOf(config.ofEngines[engine.setting] ?? '') });
  }
  let directory: StoredDirectory | undefined;
  return {
    ...ports,
    directory() {
      directory ??= new StoredDirectory(
        ports.directory(),
        keysFor('fuel: seal of the stored directory', config),
      );
      return directory;
    },
    state: (name) => (stateOf.get(name) ?? embedded.state)(name),
    embedded: STORES.filter((name) => !stateOf.has(name)),
    remote,
    close: () => stack.disposeAsync(),
  };
}
