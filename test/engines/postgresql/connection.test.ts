import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { describe, expect, inject, onTestFinished, test, vi } from 'vitest';
import { toKnownError } from '../../../src/engines/postgresql/driver/errors.ts';
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

const ITEMS = tablePlan({
  name: 'items',
  key: 'id',
  columns: { id: 'text', at: 'time?' },
  indexes: {},
});
const PLAN: StorePlan = { name: 'items', version: 2, tables: [ITEMS], durability: 'full', withinMs: 3_000 };

const SLEEP = { sql: 'SELECT pg_sleep(30)' };

describeWithPostgres('a connection to PostgreSQL', () => {
  test('ends on the server what nobody waits for any more', async () => {
    const connection = postgresql();
    await expect(connection.use(300, (run) => run(SLEEP))).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    });
    const sql = `SELECT count(*) AS n FROM pg_stat_activity WHERE query = '${SLEEP.sql}' AND state = 'active'`;
    await expect.poll(() => connection.use(1_000, (run) => run({ sql }))).toEqual([{ n: 0 }]);
  });

  test('begins no statement that nobody waits for by the time it is connected', async () => {
    const connection = postgresql();
    const work = vi.fn(async () => undefined);
    await expect(connection.use(0, work)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await connection.ping();
    expect(work).not.toHaveBeenCalled();
  });

  test('rolls back what fails, and keeps the connection for what follows', async () => {
    const connection = postgresql();
    const pid = { sql: 'SELECT pg_backend_pid() AS pid' };
    const before = await connection.use(1_000, (run) => run(pid));
    const failing = connection.transaction({ withinMs: 1_000 }, async (run) => {
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
      connection.transaction({ withinMs: 20_000 }, async (run) => {
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
    ['postgres://fuel@HOST/postgres?options=-c', /^POSTGRES_URL: -c requires a value|^POSTGRES_URL: .*-c/],
    ['postgres://fuel@HOST/postgres?options=-c nonsense=on', /^POSTGRES_URL: unrecognized .* "nonsense"/],
  ])('is told what is wrong with %s', async (url, told) => {
    const { host } = new URL(postgresUrl());
    const connection = postgresql(freshSchema(), url.replace('HOST', host));
    await expect(connection.ping()).rejects.toMatchObject({ message: expect.stringMatching(told) });
  });
});

describeWithPostgres('POSTGRES_URL', () => {
  test.each(['50%', '%zz', '100%25', 'a b', "it's"])('may have the password %s', async (password) => {
    const url = postgresUrl().replace('fuel@', `fuel:${password}@`);
    await postgresql(freshSchema(), url).ping();
  });

  test.each(['-c work_mem=3MB -c jit=on', '-c%20work_mem%3D3MB%20-c%20jit%3Don'])(
    'may have the options %s, which prevail, though settings are added',
    async (options) => {
      const connection = postgresql(
        freshSchema(),
        `${postgresUrl()}?options=${options}&application_name=own`,
      );
      const names = ['work_mem', 'jit', 'enable_seqscan', 'application_name'];
      const shown = names.map((name) => `current_setting('${name}') AS ${name}`).join(', ');
      expect(await connection.use(5_000, (run) => run({ sql: `SELECT ${shown}` }))).toEqual([
        { work_mem: '3MB', jit: 'on', enable_seqscan: 'off', application_name: 'own' },
      ]);
    },
  );
});

describe('an error of PostgreSQL', () => {
  const codeOf = (code: string): unknown => {
    const error = Object.assign(new pg.DatabaseError('said no', 1, 'error'), { code });
    return (toKnownError(error) as { readonly code?: unknown }).code;
  };

  test.each([
    '08006',
    '53100',
    '53300',
    '57014',
    '57P01',
    '57P02',
    '57P03',
    '58030',
    '25006',
    '25P03',
    '40001',
    '40P01',
    '55P03',
  ])('%s is STORE_UNAVAILABLE: another server, or this one later, takes it', (state) => {
    expect(codeOf(state)).toBe('STORE_UNAVAILABLE');
  });

  test.each(['22P02', '22021', '23502', '54000'])('%s is ITEM_REFUSED', (state) => {
    expect(codeOf(state)).toBe('ITEM_REFUSED');
  });

  test.each(['28P01', '3D000', '42501'])('%s is CONFIG_INVALID', (state) => {
    expect(codeOf(state)).toBe('CONFIG_INVALID');
  });

  test.each(['42601', 'XX000'])('%s is passed on as it is', (state) => {
    expect(codeOf(state)).toBe(state);
  });
});

describeWithPostgres('the tables', () => {
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

describe.runIf(inject('postgresBinaries') !== undefined)('a server that takes no writes', () => {
  test('is unavailable, with what to do', async () => {
    const settings = ['default_transaction_read_only=on'];
    const server = new Postgres({ binaries: inject('postgresBinaries') ?? '', settings });
    onTestFinished(() => server.remove());
    await server.start();
    await expect(postgresql('fuel', server.url).ping()).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringContaining('takes no writes'),
      remedy: expect.stringContaining('primary'),
    });
  });
});
