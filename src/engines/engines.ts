import { accessRows } from '../accounts/rows/read-rows.ts';
import { ACCESS_STORE, ACCOUNTS_STORE } from '../accounts/rows/tables.ts';
import type { Clock } from '../base/clock.ts';
import { type Config, configReader } from '../base/config/config.ts';
import { CONTROL_STORE, openCoordination } from '../base/coordination/stored-coordination.ts';
import { reasonOf } from '../base/errors.ts';
import { silentLog } from '../base/log.ts';
import { openRequestJournal, REQUESTS_STORE } from '../pull/stored-requests.ts';
import { VIEWS_STORE } from '../pull/view/stores.ts';
import { openTransactionsView } from '../pull/view/view.ts';
import { openDeliveryLog } from '../push/log/open.ts';
import { DELIVERY_STORE } from '../push/log/tables.ts';
import type { Engine, KeptStore, OpenedEngine, Opening } from '../service/engines/engine.ts';
import type { Engines, PortName, RemoteEngine, StoreName } from '../service/engines/engines.ts';
import { addressOf } from '../service/stores/moved-store.ts';
import { eventStoreDb } from './eventstoredb/engine.ts';
import { mongoDb } from './mongodb/engine.ts';
import { postgresql } from './postgresql/engine.ts';
import { openEmbedded } from './sqlite/engine.ts';

const STORES: Readonly<Record<StoreName, KeptStore>> = {
  store: 'events',
  subscriptions: 'subscriptions',
  view: VIEWS_STORE,
  queue: DELIVERY_STORE,
  coordination: CONTROL_STORE,
  accounts: ACCOUNTS_STORE,
};
const portOf = (store: StoreName) => (typeof STORES[store] === 'string' ? 'events' : 'tables');

/** Makes the functions that open engines and read the settings of a service that can have these servers. */
export function engineRegistry(servers: readonly Engine[]) {
  const selected = ({ ofEngines }: Config) =>
    servers.filter(({ setting }) => ofEngines[setting] !== undefined);
  return {
    ...configReader(Object.assign({}, ...servers.map(({ settings }) => settings))),
    servers,
    /** Returns the settings that select a server for a store, for a message. */
    settingsFor: (store: StoreName): string =>
      servers
        .filter(({ ports }) => ports.includes(portOf(store)))
        .map(({ setting }) => setting)
        .join(' or '),
    /**
     * Opens the engines. Each port is served by the last selected server that can serve it, or else by the embedded engine.
     * `log` gets the lines about engines that become unavailable or available again. Commands have no log. With `onMissing`
     * a missing embedded file is not made but read as empty, and `onMissing` gets its name.
     */
    openEngines: (
      config: Config,
      clock: Clock,
      { log = silentLog, onMissing }: Partial<Pick<Opening, 'log' | 'onMissing'>> = {},
    ): Promise<Engines> => open(selected(config), { config, clock, log, onMissing }),
    /** Returns the faults that drivers find in the engines' settings. Each line begins with the setting. Does not connect. */
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

/** The only list of engines. The embedded engine is always there too. */
export const registry = engineRegistry([eventStoreDb, mongoDb, postgresql]);
export const { servers, settingsFor, openEngines, loadConfig, showConfig, unknownSettings } = registry;

async function open(servers: readonly Engine[], given: Omit<Opening, 'once'>): Promise<Engines> {
  const { config, clock } = given;
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
  const states: Record<PortName, OpenedEngine['state']> = {
    events: embedded.state,
    tables: embedded.state,
    rateWindows: embedded.state,
  };
  for (const engine of servers) {
    const serves = engine.ports.filter((port) => serving(port) === engine);
    if (serves.length === 0) continue;
    const { server, ...opened } = await engine.open(opening);
    ports = { ...ports, ...opened.ports };
    for (const port of serves) states[port] = opened.state;
    remote.push({ ...engine, ...server, serves, address: addressOf(config.ofEngines[engine.setting] ?? '') });
  }
  const { events, tables, rateWindows } = ports;
  const isEmbedded = (name: StoreName): boolean => states[portOf(name)] === embedded.state;
  const access = once(() => tables(ACCESS_STORE));
  return {
    ...events,
    rateWindows,
    coordination: once(() => openCoordination(tables(CONTROL_STORE))),
    queue: once(() => openDeliveryLog(tables(DELIVERY_STORE), clock)),
    view: once(() => openTransactionsView(tables, clock)),
    requests: once(() => openRequestJournal(tables(REQUESTS_STORE))),
    accounts: once(() => tables(ACCOUNTS_STORE)),
    access: () => accessRows(access()),
    state: (name) => states[portOf(name)](STORES[name]),
    embedded: (Object.keys(STORES) as StoreName[]).filter(isEmbedded),
    remote,
    close: () => stack.disposeAsync(),
  };
}
