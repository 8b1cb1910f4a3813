import type { Config } from '../../base/config/config.ts';
import { optional, readSettings, secret, setting } from '../../base/config/setting.ts';
import { startsWith } from '../../base/config/values.ts';
import { FuelError } from '../../base/errors.ts';
import type { Engine } from '../../service/engines/engine.ts';
import { stateOfVersion } from '../tables/server-store.ts';
import type { PostgresOptions } from './driver/connection.ts';

/** A hit is one short statement, so these serve more of them than one process answers requests. */
const MAX_OF_WINDOWS = 4;

const settings = {
  POSTGRES_URL: secret(
    optional(
      startsWith('postgres://', 'postgresql://'),
      'PostgreSQL, instead of embedded tables and of `MONGODB_URL`: `postgres://…` or `postgresql://…`.',
    ),
  ),
  FUEL_POSTGRES_SCHEMA: setting(
    'fuel',
    schemaName,
    'The name of the schema: lower-case letters, digits and `_`. Use one for each deployment.',
  ),
};

function schemaName(text: string): string {
  if (!/^[a-z_][a-z0-9_]{0,39}$/.test(text) || text.startsWith('pg_'))
    throw new Error(
      'must be lower-case letters, digits and _, 40 at most, and not begin with a digit or pg_',
    );
  return text;
}

/** Throws `CONFIG_INVALID` if the tables would be in two places. */
function placeOf({ ofEngines }: Config): PostgresOptions {
  if (ofEngines.MONGODB_URL !== undefined) {
    throw new FuelError(
      'CONFIG_INVALID',
      'POSTGRES_URL: MONGODB_URL is set too, and only one of them can hold the view and the delivery log. Unset the other. ' +
        'Nothing copies a delivery log from one to the other',
    );
  }
  const { POSTGRES_URL: url = '', FUEL_POSTGRES_SCHEMA: schema = '' } = readSettings(
    settings,
    ofEngines,
  ).values;
  return { url, schema };
}

export const postgresql: Engine = {
  name: 'postgresql',
  title: 'PostgreSQL',
  setting: 'POSTGRES_URL',
  check: 'postgresql',
  oldestVersion: [14, 0],
  settings,
  ports: ['tables', 'rateWindows'],
  async assertSettings(config) {
    const { PostgresConnection } = await import('./driver/connection.ts');
    await new PostgresConnection(placeOf(config)).close();
  },
  async open({ config, once }) {
    const place = placeOf(config);
    const [{ PostgresConnection }, { versionOf }, windows, { openPostgresTables }] = await Promise.all([
      import('./driver/connection.ts'),
      import('./driver/schema.ts'),
      import('./rate-windows.ts'),
      import('./tables/tables.ts'),
    ]);
    const connection = once(() => new PostgresConnection(place));
    // A burst of hits takes no connection from the pages of other keys, and a hit never waits for pages.
    const ofWindows = once(() => new PostgresConnection({ ...place, maxConnections: MAX_OF_WINDOWS }));
    return {
      ports: {
        tables: (plan) => openPostgresTables(plan, { connection: connection() }),
        rateWindows: () => windows.createPostgresRateWindows({ connection: ofWindows() }),
      },
      state: async (store) =>
        typeof store === 'string'
          ? 'missing'
          : stateOfVersion(await versionOf(connection(), store.name), store),
      server: { ping: () => connection().ping(), describe: () => connection().describe() },
    };
  },
};
