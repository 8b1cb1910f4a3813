import type { Clock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import { createMemoryRateWindows } from '../../pull/edge/rate-windows/memory.ts';
import type { EnginePorts, OpenedEngine, Opening } from '../../service/engines/engine.ts';
import type { StoreName } from '../../service/engines/engines.ts';
import { openSqliteCoordination } from './coordination.ts';
import { openSqliteDirectoryRows } from './directory-rows.ts';
import { EMBEDDED_FILES, type EmbeddedFile, embeddedFile, stateOf } from './embedded-files.ts';
import { openSqliteEventStore, type SqliteEventStore } from './event-store/event-store.ts';
import { openSqliteSubscriptions } from './event-store/subscriptions.ts';
import { openSqliteDeliveryQueue } from './queue/queue.ts';
import { openSqliteRequests } from './requests.ts';
import { openSqliteView } from './view/view.ts';

const FILE_OF = {
  store: 'events',
  subscriptions: 'subscriptions',
  view: 'transactions',
  queue: 'deliveries',
  coordination: 'control',
  directory: 'directory',
} as const satisfies Record<StoreName, EmbeddedFile>;

/** The embedded engine: it needs no setting, and serves whatever no server does. */
export function openEmbedded(opening: Opening): OpenedEngine & { readonly ports: EnginePorts } {
  const { config, clock, log, once } = opening;
  const file = (store: StoreName) => embeddedFile(config, clock, EMBEDDED_FILES[FILE_OF[store]]);
  /** How a file is opened with which nothing is lost that matters to customers. */
  const putAside = (name: EmbeddedFile) => ({
    ...embeddedFile(config, clock, EMBEDDED_FILES[name]),
    onPutAside: (aside: string): void =>
      log.error(
        { file: EMBEDDED_FILES[name], aside },
        'a damaged file was put aside and is recreated: check the disk',
      ),
  });
  const recreated = (store: StoreName) => putAside(FILE_OF[store]);
  const store = once(() => openSqliteEventStore(file('store')));
  return {
    state: async (name) => stateOf(config, FILE_OF[name]),
    ports: {
      store,
      subscriptions: once(() => openSqliteSubscriptions({ ...recreated('subscriptions'), store: store() })),
      view: once(() => openSqliteView(file('view'))),
      queue: once(() => openSqliteDeliveryQueue(file('queue'))),
      coordination: once(() => openSqliteCoordination(recreated('coordination'))),
      directory: once(() => openSqliteDirectoryRows(recreated('directory'))),
      requests: once(() => openSqliteRequests(putAside('requests'))),
      rateWindows: (memory) => createMemoryRateWindows({ memory }),
    },
  };
}

/** The embedded event store with its own further methods, for `fuel store copy`. */
export function openEmbeddedEvents(config: Config, clock: Clock): SqliteEventStore {
  return openSqliteEventStore(embeddedFile(config, clock, EMBEDDED_FILES.events));
}
