import type { Config } from '../../base/config/config.ts';
import { optional, readSettings, secret, setting } from '../../base/config/setting.ts';
import { startsWith, text } from '../../base/config/values.ts';
import type { Engine } from '../../service/engines/engine.ts';
import { stateOfVersion } from '../tables/server-store.ts';
import type { MongoConnectionOptions } from './driver/connection.ts';

const settings = {
  MONGODB_URL: secret(
    optional(
      startsWith('mongodb://', 'mongodb+srv://'),
      'MongoDB, instead of embedded tables: `mongodb://…` or `mongodb+srv://…`.',
    ),
  ),
  MONGODB_DATABASE: setting('fuel', text, 'The name of the database. Use one for each deployment.'),
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
  oldestVersion: [6, 0],
  settings,
  ports: ['tables', 'rateWindows'],
  async assertSettings(config) {
    const { MongoConnection } = await import('./driver/connection.ts');
    await new MongoConnection(placeOf(config)).close();
  },
  async open({ config, once }) {
    const [{ MongoConnection }, { versionOf }, windows, { openMongoTables }] = await Promise.all([
      import('./driver/connection.ts'),
      import('./driver/collections.ts'),
      import('./rate-windows.ts'),
      import('./tables/tables.ts'),
    ]);
    const connection = once(() => new MongoConnection(placeOf(config)));
    return {
      ports: {
        tables: (plan) => openMongoTables(plan, { connection: connection() }),
        rateWindows: () => windows.createMongoRateWindows({ connection: connection() }),
      },
      state: async (store) =>
        typeof store === 'string'
          ? 'missing'
          : stateOfVersion(await versionOf(connection(), store.name), store),
      server: { ping: () => connection().ping(), describe: () => connection().describe() },
    };
  },
};
