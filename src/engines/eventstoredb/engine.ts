import type { Config } from '../../base/config/config.ts';
import { optional, readSettings, secret } from '../../base/config/setting.ts';
import { startsWith } from '../../base/config/values.ts';
import type { Engine } from '../../service/engines/engine.ts';

const settings = {
  EVENTSTORE_URL: secret(
    optional(
      startsWith('esdb://', 'esdb+discover://', 'kurrentdb://', 'kurrentdb+discover://'),
      'EventStoreDB or KurrentDB, instead of embedded events: `esdb://…`, `esdb+discover://…`, `kurrentdb://…` or `kurrentdb+discover://…`.',
    ),
  ),
};

const urlOf = ({ ofEngines }: Config): string =>
  readSettings(settings, ofEngines).values.EVENTSTORE_URL ?? '';

export const eventStoreDb: Engine = {
  name: 'eventstoredb',
  title: 'EventStoreDB or KurrentDB',
  setting: 'EVENTSTORE_URL',
  check: 'event-store',
  oldestVersion: [23, 10],
  erasesLater:
    'EventStoreDB keeps the erased bytes until a scavenge: see "Erasing" in docs/operations/customers.md',
  settings,
  ports: ['events'],
  async assertSettings(config) {
    const { EventStoreDbConnection } = await import('./driver/connection.ts');
    await new EventStoreDbConnection(urlOf(config)).close();
  },
  async open({ config, clock, log, once }) {
    const { EventStoreDb } = await import('./event-store.ts');
    const store = once(() => new EventStoreDb({ url: urlOf(config), clock, log }));
    return {
      ports: { events: { store, subscriptions: once(() => store().subscriptions()) } },
      state: async () => 'current',
      server: { ping: () => store().ping(), describe: () => store().describe() },
    };
  },
};
