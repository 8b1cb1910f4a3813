import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { PostgresConnection } from '../../../src/engines/postgresql/driver/connection.ts';
import { openPostgresTables } from '../../../src/engines/postgresql/tables/tables.ts';
import { type StorePlan, tablePlan } from '../../../src/tables/plan.ts';
import { put } from '../../../src/tables/tables.ts';
import {
  describeWithPostgres,
  freshSchema,
  postgresql,
  postgresUrl,
} from '../../support/engines/postgresql/postgresql.ts';
import { Postgres } from '../../support/engines/postgresql/server.ts';
import { CuttablePort } from '../../support/event-store/eventstoredb-double/cuttable-port.ts';

const ITEMS = tablePlan({
  name: 'items',
  key: 'id',
  columns: { id: 'text', at: 'time?' },
  indexes: {},
});
const PLAN: StorePlan = {
  ...{ name: 'items', version: 2, tables: [ITEMS], durability: 'full', withinMs: 3_000 },
};

/** A connection through a port that can be frozen. */
async function freezable() {
  const url = new URL(postgresUrl());
  const port = await CuttablePort.open({ port: 0, target: Number(url.port) });
  url.port = String(port.port);
  const connection = postgresql(freshSchema(), url.href);
  onTestFinished(() => port.close());
  return { port, connection };
}
const SLEEP = { sql: 'SELECT pg_sleep(30)' };
const ONE = { sql: 'SELECT 1 AS one' };

describeWithPostgres('a connection to PostgreSQL', () => {
  test('says its version and its clock', async () => {
    const { version, clockMs } = await postgresql().describe();
    expect(version).toMatch(/^\d+\.\d+$/);
    expect(Math.abs(clockMs - Date.now())).toBeLessThan(5_000);
  });

  test('gives up within two seconds where the server does not answer, and finds it later', async () => {
    const { port, connection } = await freezable();
    await connection.ping();
    port.freeze();
    const startMs = performance.now();
    await expect(connection.ping()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect(performance.now() - startMs).toBeLessThan(2_000);
    port.thaw();
    await expect.poll(() => connection.ping().catch(() => 'unavailable')).toBeUndefined();
  });

  test('rejects with STORE_CLOSED once it is closed, also for what is under way', async () => {
    const connection = postgresql();
    const underWay = expect(connection.use(20_000, (run) => run(SLEEP))).rejects.toMatchObject({
      code: 'STORE_CLOSED',
    });
    await sleep(200); // so that it is on its way
    await connection.close();
    await underWay;
    await expect(connection.use(1_000, (run) => run(ONE))).rejects.toMatchObject({ code: 'STORE_CLOSED' });
  });

  test('ends on the server what nobody waits for any more', async () => {
    const connection = postgresql();
    await expect(connection.use(300, (run) => run(SLEEP))).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    });
    const sql = `SELECT count(*) AS n FROM pg_stat_activity WHERE query = '${SLEEP.sql}' AND state = 'active'`;
    await expect
      .poll(() => connection.use(1_000, (run) => run({ sql })), { timeout: 5_000 })
      .toEqual([{ n: 0 }]);
  });

  test('rolls back what fails, and keeps the connection for what follows', async () => {
    const connection = postgresql();
    const pid = { sql: 'SELECT pg_backend_pid() AS pid' };
    const before = await connection.use(1_000, (run) => run(pid));
    const failing = connection.transaction(1_000, async (run) => {
      await run({ sql: 'CREATE TABLE pg_temp.left_behind (id int)' });
      throw new RangeError('own');
    });
    await expect(failing).rejects.toThrow('own');
    expect(await connection.use(1_000, (run) => run(pid))).toEqual(before);
    const left = { sql: `SELECT to_regclass('pg_temp.left_behind') AS left_behind` };
    expect(await connection.use(1_000, (run) => run(left))).toEqual([{ left_behind: null }]);
  });

  test('does a transaction again that met another one’s locks the wrong way round', async () => {
    const connection = postgresql();
    const schema = freshSchema();
    await connection.use(5_000, async (run) => {
      await run({ sql: `CREATE SCHEMA ${schema}` });
      await run({ sql: `CREATE TABLE ${schema}.counts (id int PRIMARY KEY, n int)` });
      await run({ sql: `INSERT INTO ${schema}.counts VALUES (1, 0), (2, 0)` });
    });
    const both = ([first, second]: readonly [number, number]) =>
      connection.transaction(20_000, async (run) => {
        const sql = `UPDATE ${schema}.counts SET n = n + 1 WHERE id = $1`;
        await run({ sql, values: [first] });
        await sleep(200);
        await run({ sql, values: [second] });
      });
    await Promise.all([both([1, 2]), both([2, 1])]);
    const rows = await connection.use(5_000, (run) => run({ sql: `SELECT n FROM ${schema}.counts` }));
    expect(rows).toEqual([{ n: 2 }, { n: 2 }]);
  });

  test.each([
    ['postgres://nobody@HOST/postgres', /^POSTGRES_URL: role "nobody" does not exist/],
    ['postgres://fuel@HOST/nowhere', /^POSTGRES_URL: database "nowhere" does not exist/],
    ['postgres://fuel@HOST/postgres?sslmode=verify-full', /SSL/],
  ])('is told what is wrong with %s', async (url, told) => {
    const { host } = new URL(postgresUrl());
    const connection = postgresql(freshSchema(), url.replace('HOST', host));
    await expect(connection.ping()).rejects.toMatchObject({ message: expect.stringMatching(told) });
  });

  test('takes no connection string that the driver can’t read, and does not tell its password', () => {
    const made = () =>
      new PostgresConnection({ url: 'postgres://fuel:pepper@host:port:1/x', schema: 'fuel' });
    expect(made).toThrow(/^POSTGRES_URL: /);
    expect(made).not.toThrow(/pepper/);
  });
});

describeWithPostgres('an error of PostgreSQL', () => {
  const codeOf = async (state: string): Promise<unknown> => {
    const error = Object.assign(new pg.DatabaseError('said no', 1, 'error'), { code: state });
    return postgresql()
      .use(1_000, () => Promise.reject(error))
      .catch((thrown) => thrown.code);
  };

  test.each([
    ...['08006', '53100', '53300', '57014', '57P01', '57P02', '57P03', '58030'],
    ...['25006', '25P03', '40001', '40P01', '55P03'],
  ])('%s is STORE_UNAVAILABLE: another server, or this one later, takes it', async (state) => {
    expect(await codeOf(state)).toBe('STORE_UNAVAILABLE');
  });

  test.each(['22P02', '22021', '23502', '54000'])('%s is ITEM_REFUSED', async (state) => {
    expect(await codeOf(state)).toBe('ITEM_REFUSED');
  });

  test.each(['28P01', '3D000', '42501'])('%s is CONFIG_INVALID', async (state) => {
    expect(await codeOf(state)).toBe('CONFIG_INVALID');
  });

  test.each(['42601', 'XX000'])('%s is passed on as it is', async (state) => {
    expect(await codeOf(state)).toBe(state);
  });

  test('is that of the work where it is the work’s own', async () => {
    await expect(postgresql().use(1_000, () => Promise.reject(new RangeError('own')))).rejects.toThrow('own');
  });
});

describeWithPostgres('the tables', () => {
  test('of several processes are made by one of them, and once', async () => {
    const schema = freshSchema();
    const opened = Array.from({ length: 6 }, () =>
      openPostgresTables(PLAN, { connection: postgresql(schema) }),
    );
    const found = await Promise.all(opened.map((each) => each.find(ITEMS, { index: 'key', limit: 1 })));
    expect(found.flat()).toEqual([]);
  });

  test('that a newer version made are refused, those of an older one get what is missing', async () => {
    const connection = postgresql();
    const first = openPostgresTables({ ...PLAN, tables: [], version: 1 }, { connection });
    await first.now();
    const second = openPostgresTables(PLAN, { connection });
    expect(await second.write([put(ITEMS, { id: 'a', at: null })])).toEqual([true]);
    await expect(openPostgresTables({ ...PLAN, version: 1 }, { connection }).now()).rejects.toMatchObject({
      code: 'STORE_NEWER',
    });
  });

  test('have times of years that no store has seen, and texts with any character, in order', async () => {
    const tables = openPostgresTables(PLAN, { connection: postgresql() });
    const times = [8.64e15, -1.9e14, -62_198_755_200_000, 0, 1];
    const texts = [
      '',
      '\0',
      '\0\0',
      '\0\u0001',
      '\u0001',
      '\u0001\0',
      '\u0001\u0001\u0002',
      '\u0002',
      'a',
      'ä',
      'Z',
    ];
    const rows = texts.map((id, n) => ({ id, at: times[n] ?? null }));
    await tables.write(rows.map((row) => put(ITEMS, row)));
    expect(await tables.get(ITEMS, texts)).toEqual(rows);
    const found = await tables.find(ITEMS, { index: 'key', limit: 20 });
    const bytes = (text: string) => Buffer.from(text);
    expect(found.map(({ id }) => id)).toEqual(texts.toSorted((a, b) => bytes(a).compare(bytes(b))));
  });

  test('refuse what PostgreSQL can’t store, and nothing of the list is written', async () => {
    const tables = openPostgresTables(PLAN, { connection: postgresql() });
    const long = Array.from({ length: 20_000 }, (_, n) => n).join('');
    const writing = tables.write([put(ITEMS, { id: 'a', at: null }), put(ITEMS, { id: long, at: null })]);
    await expect(writing).rejects.toMatchObject({ code: 'ITEM_REFUSED' });
    expect(await tables.count(ITEMS, { index: 'key' }, 9)).toBe(0);
  });
});

describe.runIf(inject('postgresBinaries') !== undefined)('a server of another kind', () => {
  const started = async (...settings: string[]) => {
    const server = new Postgres({ binaries: inject('postgresBinaries') ?? '', settings });
    onTestFinished(() => server.remove());
    await server.start();
    const connection = new PostgresConnection({ url: server.url, schema: 'fuel' });
    onTestFinished(() => connection.close());
    return { server, connection };
  };

  test('that takes no writes is unavailable, with what to do', async () => {
    const { connection } = await started('default_transaction_read_only=on');
    await expect(connection.ping()).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringContaining('takes no writes'),
      remedy: expect.stringContaining('primary'),
    });
  });

  test('that is not there yet is found once it is', async () => {
    const { server, connection } = await started();
    await connection.ping();
    await server.kill();
    const tables = openPostgresTables(PLAN, { connection });
    const tries = await Promise.allSettled([tables.now(), tables.now()]);
    for (const each of tries)
      expect(each).toMatchObject({ status: 'rejected', reason: { code: 'STORE_UNAVAILABLE' } });
    await server.start();
    expect(await tables.write([put(ITEMS, { id: 'a', at: null })])).toEqual([true]);
  });
});
