import pg from 'pg';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openPostgresTables } from '../../../src/engines/postgresql/tables/tables.ts';
import {
  describeWithPostgres,
  freshSchema,
  postgresql,
  postgresUrl,
} from '../../support/engines/postgresql/postgresql.ts';
import { STORE } from '../../support/engines/tables-under-test.ts';
import { until } from '../../support/waiting.ts';

const NEVER_MS = 60_000;

/** Opens one store like two processes that never look for changes by themselves. */
function opened() {
  const schema = freshSchema();
  const [tables, other] = [0, 1].map(() => {
    const each = openPostgresTables(STORE, { connection: postgresql(schema), pollMs: NEVER_MS });
    onTestFinished(() => each.close());
    return each;
  }) as [ReturnType<typeof openPostgresTables>, ReturnType<typeof openPostgresTables>];
  const heard = vi.fn();
  other.changed.add({ notify: heard });
  return { tables, other, heard, schema };
}

/** Counts the connections that listen in this schema, or cuts them. */
async function listening(schema: string, work: 'count' | 'cut' = 'count'): Promise<number> {
  const client = new pg.Client(postgresUrl());
  await client.connect();
  const what = work === 'cut' ? 'pg_terminate_backend(pid)' : 'pid';
  const sql = `SELECT ${what} FROM pg_stat_activity WHERE query = $1`;
  const { rowCount } = await client.query(sql, [`LISTEN "fuel ${schema}"`]);
  await client.end();
  return rowCount ?? 0;
}

describeWithPostgres('the announcement of changes on PostgreSQL', () => {
  test('is heard by another process at once, and by the own one from nobody else', async () => {
    const { tables, other, heard, schema } = opened();
    const own = vi.fn();
    tables.changed.add({ notify: own });
    await until(async () => (await listening(schema)) === 2);
    tables.changed.notify();
    expect(own).toHaveBeenCalledTimes(1);
    await expect.poll(() => heard.mock.calls.length).toBe(1);
    expect(own).toHaveBeenCalledTimes(1);
    other.changed.notify();
    await expect.poll(() => own.mock.calls.length).toBe(2);
  });

  test('is one for many changes at a time', async () => {
    const { tables, heard, schema } = opened();
    await until(async () => (await listening(schema)) === 1);
    for (let times = 0; times < 500; times++) tables.changed.notify();
    await expect.poll(() => heard.mock.calls.length).toBeGreaterThan(1);
    expect(heard.mock.calls.length).toBeLessThan(10);
  });

  test('is heard again after its connection was cut', async () => {
    const { tables, heard, schema } = opened();
    await until(async () => (await listening(schema)) === 1);
    expect(await listening(schema, 'cut')).toBe(1);
    await until(async () => {
      tables.changed.notify();
      return heard.mock.calls.length > 0;
    });
  });

  test('ends with the connection: nothing listens any more', async () => {
    const schema = freshSchema();
    const connection = postgresql(schema);
    const tables = openPostgresTables(STORE, { connection });
    tables.changed.add({ notify: () => undefined });
    await until(async () => (await listening(schema)) === 1);
    await connection.close();
    await until(async () => (await listening(schema)) === 0);
    await tables.close();
  });
});
