import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { PostgresConnection } from '../../../src/engines/postgresql/driver/connection.ts';
import { openPostgresTables } from '../../../src/engines/postgresql/tables/tables.ts';
import { type StorePlan, tablePlan } from '../../../src/tables/plan.ts';
import { put } from '../../../src/tables/tables.ts';
import { findPgBouncer, PgBouncer } from '../../support/engines/postgresql/pgbouncer.ts';
import {
  describeWithPostgres,
  freshSchema,
  postgresql,
  postgresUrl,
} from '../../support/engines/postgresql/postgresql.ts';

const ITEMS = tablePlan({
  name: 'items',
  key: 'id',
  columns: { id: 'integer', at: 'time?', share: 'integer', bytes: 'bytes', name: 'text' },
  indexes: { by_name: ['name'] },
  indexesLater: true,
});
const PLAN: StorePlan = { name: 'items', version: 1, tables: [ITEMS], durability: 'full', withinMs: 20_000 };
/** Settings of a role that change how values look as text, how statements see each other, and where names are found. */
const FOREIGN = [
  "datestyle = 'German'",
  "timezone = 'Asia/Kathmandu'",
  "bytea_output = 'escape'",
  ...[
    "default_transaction_isolation = 'serializable'",
    "search_path = 'nowhere'",
    "intervalstyle = 'iso_8601'",
  ],
];
const SHORT = ['statement_timeout = 150', 'lock_timeout = 50', 'idle_in_transaction_session_timeout = 150'];

/** Returns the URL of a new role that has these settings. */
async function roleWith(settings: readonly string[]): Promise<string> {
  const name = `fuel_role_${randomUUID().slice(0, 8)}`;
  const client = new pg.Client(postgresUrl());
  await client.connect();
  await client.query(`CREATE ROLE ${name} SUPERUSER LOGIN`);
  for (const setting of settings) await client.query(`ALTER ROLE ${name} SET ${setting}`);
  onTestFinished(async () => {
    await client.query(`REASSIGN OWNED BY ${name} TO CURRENT_USER`);
    await client.query(`DROP ROLE ${name}`);
    await client.end();
  });
  const url = new URL(postgresUrl());
  url.username = name;
  return url.href;
}

async function behindPool(server: string, ...settings: string[]): Promise<string> {
  const ignored = 'ignore_startup_parameters = options';
  const pool = await new PgBouncer(findPgBouncer() ?? '').start({ server, settings: [ignored, ...settings] });
  onTestFinished(() => pool.remove());
  return pool.url;
}

const WAYS = [
  { way: 'directly', through: async (url: string) => url, runs: true },
  { way: 'behind PgBouncer', through: (url: string) => behindPool(url), runs: findPgBouncer() !== undefined },
];

function connected(url: string): PostgresConnection {
  const connection = postgresql(freshSchema(), url);
  onTestFinished(() => connection.close());
  return connection;
}

describeWithPostgres('a role with settings of its own', () => {
  describe.for(WAYS.filter(({ runs }) => runs))('reached $way', ({ through }) => {
    test('changes nothing of what is stored and read', async () => {
      const connection = connected(await through(await roleWith(FOREIGN)));
      const tables = openPostgresTables(PLAN, { connection });
      const times = [8.64e15, -1.9e14, -62_198_755_200_000, 0, 1_767_225_599_999, null];
      const rows = times.map((at, id) => ({
        id,
        at,
        share: 2 ** 53 - 1,
        name: `\0${id}\u0001`,
        bytes: Uint8Array.of(0, 92, 120, 39, 255),
      }));
      await tables.write(rows.map((row) => put(ITEMS, row)));
      const found = await tables.get(ITEMS, times.keys().toArray());
      expect(found.map((row) => ({ ...row, bytes: Uint8Array.from(row.bytes) }))).toEqual(rows);
      expect(Math.abs((await tables.now()) - Date.now())).toBeLessThan(5_000);
    });

    test('lets simultaneous writes of one row through, each in its turn', async () => {
      const connection = connected(await through(await roleWith(FOREIGN)));
      const tables = openPostgresTables(PLAN, { connection });
      const write = (n: number) =>
        tables.write([put(ITEMS, { id: 1, at: n, share: n, bytes: new Uint8Array(), name: 'a' })]);
      await write(0);
      const done = await Promise.all(Array.from({ length: 30 }, (_, n) => write(n)));
      expect(done.flat()).toEqual(Array.from({ length: 30 }, () => true));
    });

    test('does not end work that has more time', async () => {
      const connection = connected(await through(await roleWith(SHORT)));
      const slow = { sql: 'SELECT pg_sleep(0.5)' };
      expect(await connection.use(10_000, (run) => run(slow))).toHaveLength(1);
      const twice = async (run: Parameters<Parameters<typeof connection.use>[1]>[0]) => {
        await run(slow);
        await new Promise((resolve) => setTimeout(resolve, 400));
        return run(slow);
      };
      expect(await connection.transaction({ withinMs: 10_000 }, twice)).toHaveLength(1);
    });

    test('does not end the making of indexes, which waits for others', async () => {
      const connection = connected(await through(await roleWith(SHORT)));
      const tables = openPostgresTables(PLAN, { connection });
      await tables.write([put(ITEMS, { id: 1, at: 1, share: 1, bytes: new Uint8Array(), name: 'a' })]);
      const other = postgresql(connection.schema);
      const holding = other.transaction({ withinMs: 10_000 }, async (run) => {
        await run({ sql: `LOCK TABLE "${connection.schema}".items IN SHARE UPDATE EXCLUSIVE MODE` });
        await run({ sql: `UPDATE "${connection.schema}".items SET share = 2` });
        await run({ sql: 'SELECT pg_sleep(0.6)' });
      });
      await Promise.all([tables.makeIndexes(ITEMS), holding]);
      expect(await tables.find(ITEMS, { index: 'by_name', limit: 9 })).toMatchObject([{ share: 2 }]);
    });
  });

  test('is not said to be out of reach where a statement takes too long', async () => {
    const connection = connected(postgresUrl());
    const late = connection.transaction({ withinMs: 10_000 }, async (run) => {
      await run({ sql: 'SET LOCAL statement_timeout = 20' });
      await run({ sql: 'SELECT pg_sleep(5)' });
    });
    await expect(late).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/^PostgreSQL answers: canceling statement due to statement timeout$/),
    });
  });
});

describe.runIf(findPgBouncer() !== undefined)(
  'PgBouncer that gives each statement another connection',
  () => {
    describeWithPostgres('', () => {
      test('is refused, with what to set', async () => {
        const connection = connected(await behindPool(postgresUrl(), 'pool_mode = statement'));
        await expect(connection.ping()).rejects.toMatchObject({
          code: 'CONFIG_INVALID',
          remedy: expect.stringContaining('pool_mode = transaction'),
        });
      });
    });
  },
);
