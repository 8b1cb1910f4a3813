import type { Config } from '../../base/config/config.ts';
import { optional, readSettings, secret, setting } from '../../base/config/setting.ts';
import { startsWith, text } from '../../base/config/values.ts';
import type { Engine } from '../../service/engines/engine.ts';
import type { StoreName } from '../../service/engines/engines.ts';
import type { MongoConnectionOptions } from './driver/connection.ts';
import type { CollectionsPlan } from './driver/prepared-collections.ts';

const settings = {
  MONGODB_URL: secret(optional(startsWith('mongodb://', 'mongodb+srv://'))),
  MONGODB_DATABASE: setting('fuel', text),
};

function placeOf({ ofEngines }: Config): MongoConnectionOptions {
  const { MONGODB_URL: url = '', MONGODB_DATABASE: database = '' } = readSettings(settings, ofEngines).values;
  return { url, database };
}

export const mongoDb: Engine = {
  name: 'mongodb',
  title: 'MongoDB',
  setting: 'MONGODB_URL',
  check: 'mongodb',
  holds: 'view and delivery log',
  oldestVersion: [6, 0],
  settings,
  ports: ['view', 'queue', 'coordination', 'directory', 'requests', 'rateWindows'],
  async assertSettings(config) {
    const { MongoConnection } = await import('./driver/connection.ts');
    await new MongoConnection(placeOf(config)).close();
  },
  async open({ config, clock, once }) {
    const [
      { MongoConnection },
      { preparedState },
      { DELIVERIES_PLAN },
      queues,
      views,
      coordinations,
      directories,
      windows,
      requests,
    ] = await Promise.all([
      import('./driver/connection.ts'),
      import('./driver/prepared-collections.ts'),
      import('./queue/collections.ts'),
      import('./queue/queue.ts'),
      import('./view/view.ts'),
      import('./coordination.ts'),
      import('./directory-rows.ts'),
      import('./rate-windows.ts'),
      import('./requests.ts'),
    ]);
    const connection = once(() => new MongoConnection(placeOf(config)));
    const plans: Partial<Record<StoreName, CollectionsPlan>> = {
      view: views.PLAN,
      queue: DELIVERIES_PLAN,
      coordination: coordinations.PLAN,
      directory: directories.PLAN,
    };
    return {
      ports: {
        view: once(() => views.openMongoView({ connection: connection(), clock })),
        queue: once(() => queues.openMongoDeliveryQueue({ connection: connection(), clock })),
        coordination: once(() => coordinations.openMongoCoordination({ connection: connection() })),
        directory: once(() => directories.openMongoDirectoryRows({ connection: connection() })),
        requests: once(() => requests.openMongoRequests({ connection: connection() })),
        rateWindows: () => windows.createMongoRateWindows({ connection: connection() }),
      },
      async state(store) {
        const plan = plans[store];
        return plan === undefined ? 'missing' : preparedState(connection(), plan);
      },
      server: { ping: () => connection().ping(), describe: () => connection().describe() },
    };
  },
};
