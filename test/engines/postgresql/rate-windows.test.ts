import { describe, expect, inject, onTestFinished, test, vi } from 'vitest';
import { PostgresConnection } from '../../../src/engines/postgresql/driver/connection.ts';
import { createPostgresRateWindows } from '../../../src/engines/postgresql/rate-windows.ts';
import { allowed, rateWindowsContract } from '../../contracts/rate-windows.contract.ts';
import {
  describeWithPostgres,
  freshSchema,
  postgresql,
} from '../../support/engines/postgresql/postgresql.ts';
import { Postgres } from '../../support/engines/postgresql/server.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { until } from '../../support/waiting.ts';

function windowsIn(schema = freshSchema()) {
  const connection = postgresql(schema);
  const clock = new FakeClock();
  /** Time passes, for the process and for the server. */
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms);
    const sql = `UPDATE ${schema}.rate_windows SET ends_at = ends_at - $1 * interval '1 ms'`;
    await connection.use(5_000, (run) => run({ sql, values: [ms] }));
  };
  const rows = async (): Promise<number> => {
    const sql = `SELECT count(*) AS n FROM ${schema}.rate_windows`;
    const [row] = await connection.use(5_000, (run) => run({ sql }));
    return Number(row?.n);
  };
  return { windows: createPostgresRateWindows({ connection, clock }), connection, clock, pass, rows };
}

describeWithPostgres('rate windows on PostgreSQL', () => {
  rateWindowsContract(async () => windowsIn());

  test('are one for all processes: simultaneous hits of several never let more through', async () => {
    const schema = freshSchema();
    const processes = [windowsIn(schema), windowsIn(schema), windowsIn(schema)];
    for (const round of [1, 2]) {
      const through = await Promise.all(
        processes.map(({ windows }) => allowed(windows, { limit: 60, hits: 40 })),
      );
      expect(
        through.reduce((sum, count) => sum + count),
        `round ${round}`,
      ).toBe(60);
      for (const { clock } of processes.slice(1)) clock.advance(60_000);
      await processes[0]?.pass(60_000);
    }
  });

  test('let nothing through with a limit of none', async () => {
    const { windows } = windowsIn();
    expect(await allowed(windows, { limit: 0, hits: 2 })).toBe(0);
  });

  test('refuse a key that is at its limit without asking the server again, and take one statement per hit', async () => {
    const { windows, pass } = windowsIn();
    expect(await allowed(windows, { limit: 3, hits: 4 })).toBe(3);
    const asked = vi.spyOn(PostgresConnection.prototype, 'use');
    onTestFinished(() => asked.mockRestore());
    expect(await allowed(windows, { limit: 3, hits: 4 })).toBe(0);
    expect(asked).not.toHaveBeenCalled();
    await pass(60_000);
    expect(await allowed(windows, { limit: 3, hits: 2 })).toBe(2);
    expect(asked).toHaveBeenCalledTimes(3);
  });

  test('that have ended are removed by the first hit of a process', async () => {
    const schema = freshSchema();
    const { windows, pass, rows } = windowsIn(schema);
    for (const id of ['a', 'b', 'c']) await windows.hit(id, 5);
    await pass(60_000);
    await windowsIn(schema).windows.hit('d', 5);
    expect(await rows()).toBe(1);
  });
});

describe.runIf(inject('postgresBinaries') !== undefined)('while PostgreSQL is unavailable', () => {
  test('a hit is refused with STORE_UNAVAILABLE in good time, and counted when it is available again', async () => {
    const server = await new Postgres({ binaries: inject('postgresBinaries') ?? '' }).start();
    onTestFinished(() => server.remove());
    const connection = new PostgresConnection({ url: server.url, schema: 'fuel' });
    onTestFinished(() => connection.close());
    const windows = createPostgresRateWindows({ connection });
    expect(await windows.hit('key', 2)).toEqual({ allowed: true });
    await server.kill();
    const startedAt = performance.now();
    await expect(windows.hit('key', 2)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect(performance.now() - startedAt).toBeLessThan(1_900);
    await server.start();
    await until(async () => {
      const verdict = await windows.hit('third', 2).catch(() => ({ allowed: false }));
      return verdict.allowed;
    }, 10_000);
  });
});
