import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { PostgresConnection } from '../../../src/engines/postgresql/driver/connection.ts';
import { createPostgresRateWindows } from '../../../src/engines/postgresql/rate-windows.ts';
import { openPostgresTables } from '../../../src/engines/postgresql/tables/tables.ts';
import { put } from '../../../src/tables/tables.ts';
import { tablesContract } from '../../contracts/tables.contract.ts';
import { findPgBouncer, PgBouncer } from '../../support/engines/postgresql/pgbouncer.ts';
import {
  describeWithPostgres,
  freshSchema,
  postgresUrl,
} from '../../support/engines/postgresql/postgresql.ts';
import { ENTRIES, STORE } from '../../support/engines/tables-under-test.ts';

const binary = findPgBouncer();
if (binary === undefined && inject('postgresUrl') !== undefined)
  console.log('not tested here: PgBouncer (set PGBOUNCER_BINARY, or install the package pgbouncer)');

const started = async (...settings: string[]) => {
  const pool = await new PgBouncer(binary ?? '').start({ server: postgresUrl(), settings });
  onTestFinished(() => pool.remove());
  return pool;
};
const connected = (url: string, schema = freshSchema()) => {
  const connection = new PostgresConnection({ url, schema });
  onTestFinished(() => connection.close());
  return connection;
};
const IGNORED = 'ignore_startup_parameters = options';

describe.runIf(binary !== undefined)('behind PgBouncer, each transaction on another connection', () => {
  describeWithPostgres('tables', () => {
    tablesContract(async () => {
      const connection = connected((await started(IGNORED)).url);
      const second = () => openPostgresTables(STORE, { connection, pollMs: 50 });
      // The server has no settings of the service here: what it reads by is its own choice, seen in tables.test.ts.
      return { tables: second(), second, plansOf: undefined };
    });

    test('are found to have changed by looking', async () => {
      const { url } = await started(IGNORED);
      const schema = freshSchema();
      const [tables, other] = [0, 1].map(() =>
        openPostgresTables(STORE, { connection: connected(url, schema), pollMs: 100 }),
      );
      const heard = new Promise<void>((notify) => other?.changed.add({ notify }));
      await tables?.write([put(ENTRIES, { id: 1, account: 1, revision: 0, status: null, made_at: null })]);
      tables?.changed.notify();
      await heard;
      await other?.close();
    });

    test('are made by several processes at once, on connections that knew the place without them', async () => {
      const { url } = await started(IGNORED, 'default_pool_size = 2');
      const made = (schema: string) =>
        Promise.all(
          Array.from({ length: 6 }, () =>
            openPostgresTables(STORE, { connection: connected(url, schema) }).get(ENTRIES, [1]),
          ),
        );
      await made(freshSchema()); // from now on the server's processes keep what they looked up
      expect(await made(freshSchema())).toEqual(Array.from({ length: 6 }, () => []));
    });

    test('count rates', async () => {
      const windows = createPostgresRateWindows({ connection: connected((await started(IGNORED)).url) });
      const verdicts = await Promise.all(Array.from({ length: 9 }, () => windows.hit('key', 5)));
      expect(verdicts.filter(({ allowed }) => allowed)).toHaveLength(5);
    });

    test('are refused, with what to set, to a user whose password it does not accept', async () => {
      const pool = new PgBouncer(binary ?? '');
      onTestFinished(() => pool.remove());
      await pool.start({ server: postgresUrl(), settings: [IGNORED], password: 'right' });
      await connected(pool.url).ping();
      for (const user of ['fuel:wrong', 'other:right'])
        await expect(connected(pool.url.replace('fuel:right', user)).ping()).rejects.toMatchObject({
          code: 'CONFIG_INVALID',
          remedy: expect.stringContaining('auth_file'),
        });
    });

    test('are refused, with what to set, where it takes no options', async () => {
      await expect(connected((await started()).url).ping()).rejects.toMatchObject({
        code: 'CONFIG_INVALID',
        remedy: expect.stringContaining('ignore_startup_parameters'),
      });
    });
  });
});
