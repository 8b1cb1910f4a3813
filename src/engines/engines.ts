import type { DirectoryRows } from '../accounts/directory/rows/rows.ts';
import { StoredDirectory } from '../accounts/directory/rows/stored-directory.ts';
import { keysFor } from '../accounts/master-key.ts';
import type { Clock } from '../base/clock.ts';
import type { Config } from '../base/config/config.ts';
import { reasonOf } from '../base/errors.ts';
import { type Log, silentLog } from '../base/log.ts';
import { createMemoryRateWindows } from '../pull/edge/rate-windows/memory.ts';
import { EVENT_STORE, type RemoteEngine } from '../service/engines/engine-health.ts';
import type { Engines, StoreState } from '../service/engines/engines.ts';
import { openSqliteCoordination } from './sqlite/coordination.ts';
import { openSqliteDirectoryRows } from './sqlite/directory-rows.ts';
import { EMBEDDED_FILES, type EmbeddedFile, embeddedFile, stateOf } from './sqlite/embedded-files.ts';
import { openSqliteEventStore, type SqliteEventStore } from './sqlite/event-store/event-store.ts';
import { openSqliteSubscriptions } from './sqlite/event-store/subscriptions.ts';
import { openSqliteDeliveryQueue } from './sqlite/queue/queue.ts';
import { openSqliteView } from './sqlite/view/view.ts';

const FILE_OF = {
  view: 'transactions',
  queue: 'deliveries',
  coordination: 'control',
  directory: 'directory',
} as const;

type EventEngine = Pick<Engines, 'store' | 'subscriptions' | 'endNow'> & {
  state(name: 'store' | 'subscriptions'): Promise<StoreState>;
};
type ViewEngine = Omit<Engines, keyof EventEngine | 'remote' | 'close'> & {
  state(name: keyof typeof FILE_OF): Promise<StoreState>;
};

interface Closable {
  close(): Promise<void>;
}

/** Opens each engine once, and closes them together. */
class Opening {
  readonly #opened: Closable[] = [];

  once<T extends Closable>(open: () => T): () => T {
    let engine: T | undefined;
    return () => {
      if (engine === undefined) {
        engine = open();
        this.#opened.push(engine);
      }
      return engine;
    };
  }

  /** Closes all, even if one fails to close. */
  async close(): Promise<void> {
    const errors: unknown[] = [];
    for (const engine of this.#opened.splice(0).reverse()) {
      await engine.close().catch((error: unknown) => errors.push(error));
    }
    if (errors.length > 0) throw new AggregateError(errors, `${errors.length} stores could not be closed`);
  }
}

/**
 * The only place that picks adapters: those of the engines whose connection strings are set, and otherwise the embedded
 * ones. `log` gets the lines about engines that become unavailable or available again; commands have none.
 */
export async function openEngines(config: Config, clock: Clock, log: Log = silentLog): Promise<Engines> {
  const opening = new Opening();
  const { EVENTSTORE_URL: eventStoreUrl, MONGODB_URL: mongodbUrl } = config;
  const remote: RemoteEngine[] = [];
  const events =
    eventStoreUrl === undefined
      ? embeddedEvents({ config, clock, log }, opening)
      : await eventStoreDb({ url: eventStoreUrl, clock, log }, opening, remote);
  const view =
    mongodbUrl === undefined
      ? embeddedView({ config, clock, log }, opening)
      : await mongoDb({ config, url: mongodbUrl, clock }, opening, remote);
  return {
    ...events,
    ...view,
    state: (name) => (name === 'store' || name === 'subscriptions' ? events.state(name) : view.state(name)),
    remote,
    close: () => opening.close(),
  };
}

/** What the drivers say against the engines' connection strings, as lines that begin with the setting; connects to none. */
export async function faultsOfEngines(config: Config): Promise<string[]> {
  const { EVENTSTORE_URL: eventStoreUrl, MONGODB_URL: url, MONGODB_DATABASE: database } = config;
  const faults: string[] = [];
  const check = async (open: () => Promise<Closable>): Promise<void> => {
    try {
      await (await open()).close();
    } catch (error) {
      faults.push(reasonOf(error));
    }
  };
  if (eventStoreUrl !== undefined) {
    const { EventStoreDbConnection } = await import('./eventstoredb/driver/connection.ts');
    await check(async () => new EventStoreDbConnection(eventStoreUrl));
  }
  if (url !== undefined) {
    const { MongoConnection } = await import('./mongodb/driver/connection.ts');
    await check(async () => new MongoConnection({ url, database }));
  }
  return faults;
}

/** The embedded event store with its own further methods, for `fuel store copy`. */
export function openEmbeddedEvents(config: Config, clock: Clock): SqliteEventStore {
  return openSqliteEventStore(embeddedFile(config, clock, EMBEDDED_FILES.events));
}

const sealed = (rows: DirectoryRows, config: Config): StoredDirectory =>
  new StoredDirectory(rows, keysFor('fuel: seal of the stored directory', config));

interface Given {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Log;
}

/** How a file is opened with which nothing is lost. */
function recreated({ config, clock, log }: Given, name: EmbeddedFile) {
  const file = EMBEDDED_FILES[name];
  return {
    ...embeddedFile(config, clock, file),
    onPutAside: (aside: string): void =>
      log.error({ file, aside }, 'a damaged file was put aside and is recreated: check the disk'),
  };
}

function embeddedEvents(given: Given, opening: Opening): EventEngine {
  const { config, clock } = given;
  const store = opening.once(() => openEmbeddedEvents(config, clock));
  return {
    store,
    endNow: () => store().end(),
    subscriptions: opening.once(() =>
      openSqliteSubscriptions({
        ...recreated(given, 'subscriptions'),
        store: store(),
      }),
    ),
    state: async (name) => stateOf(config, name === 'store' ? 'events' : 'subscriptions'),
  };
}

function embeddedView(given: Given, opening: Opening): ViewEngine {
  const { config, clock } = given;
  const at = (name: string) => embeddedFile(config, clock, name);
  return {
    view: opening.once(() => openSqliteView(at(EMBEDDED_FILES.transactions))),
    queue: opening.once(() => openSqliteDeliveryQueue(at(EMBEDDED_FILES.deliveries))),
    coordination: opening.once(() => openSqliteCoordination(recreated(given, 'control'))),
    directory: opening.once(() => sealed(openSqliteDirectoryRows(recreated(given, 'directory')), config)),
    rateWindows: (memory) => createMemoryRateWindows({ memory }),
    state: async (name) => stateOf(config, FILE_OF[name]),
  };
}

/** Loaded here, since most commands run without a driver. */
async function eventStoreDb(
  options: { readonly url: string; readonly clock: Clock; readonly log: Log },
  opening: Opening,
  remote: RemoteEngine[],
): Promise<EventEngine> {
  const { openEventStoreDb } = await import('./eventstoredb/event-store.ts');
  const store = opening.once(() => openEventStoreDb(options));
  remote.push({
    name: EVENT_STORE,
    check: () => store().ping(),
    describe: () => store().describe(),
  });
  return {
    store,
    endNow: undefined,
    subscriptions: opening.once(() => store().subscriptions()),
    state: async () => 'current',
  };
}

async function mongoDb(
  { config, url, clock }: { readonly config: Config; readonly url: string; readonly clock: Clock },
  opening: Opening,
  remote: RemoteEngine[],
): Promise<ViewEngine> {
  const [
    { MongoConnection },
    { preparedState },
    { DELIVERIES_PLAN },
    views,
    queues,
    coordinations,
    directories,
    windows,
  ] = await Promise.all([
    import('./mongodb/driver/connection.ts'),
    import('./mongodb/driver/prepared-collections.ts'),
    import('./mongodb/queue/collections.ts'),
    import('./mongodb/view/view.ts'),
    import('./mongodb/queue/queue.ts'),
    import('./mongodb/coordination.ts'),
    import('./mongodb/directory-rows.ts'),
    import('./mongodb/rate-windows.ts'),
  ]);
  const connect = opening.once(() => new MongoConnection({ url, database: config.MONGODB_DATABASE }));
  remote.push({ name: 'mongodb', check: () => connect().ping(), describe: () => connect().describe() });
  const plans = {
    view: views.PLAN,
    queue: DELIVERIES_PLAN,
    coordination: coordinations.PLAN,
    directory: directories.PLAN,
  };
  return {
    state: (name) => preparedState(connect(), plans[name]),
    view: opening.once(() => views.openMongoView({ connection: connect(), clock })),
    queue: opening.once(() => queues.openMongoDeliveryQueue({ connection: connect(), clock })),
    coordination: opening.once(() => coordinations.openMongoCoordination({ connection: connect() })),
    directory: opening.once(() =>
      sealed(directories.openMongoDirectoryRows({ connection: connect() }), config),
    ),
    rateWindows: () => windows.createMongoRateWindows({ connection: connect() }),
  };
}
