import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { PostgresConnection } from '../../../src/engines/postgresql/driver/connection.ts';
import { openPostgresTables } from '../../../src/engines/postgresql/tables/tables.ts';
import { type StorePlan, tablePlan } from '../../../src/tables/plan.ts';
import { change, put, type Tables } from '../../../src/tables/tables.ts';
import { Postgres } from '../../support/engines/postgresql/server.ts';

const ROWS = tablePlan({
  name: 'rows_written',
  key: 'id',
  columns: { id: 'integer', writer: 'integer' },
  indexes: { by_writer: ['writer'] },
});
const COUNTS = tablePlan({ name: 'counts', key: 'id', columns: { id: 'text', n: 'integer' }, indexes: {} });
const PLAN: StorePlan = {
  name: 'failover',
  version: 1,
  tables: [ROWS, COUNTS],
  durability: 'full',
  withinMs: 2_000,
};
const WRITERS = 4;
const KILLS = 4;

/** A writer's knowledge: what was acknowledged, and how often it got no answer. */
interface Told {
  readonly ids: number[];
  counted: number;
  unknown: number;
}

describe.runIf(inject('postgresBinaries') !== undefined)(
  'writes while PostgreSQL is killed and started',
  () => {
    test('are there where they were acknowledged, each once', async () => {
      const server = await new Postgres({ binaries: inject('postgresBinaries') ?? '' }).start();
      onTestFinished(() => server.remove());
      const open = (): Tables => {
        const connection = new PostgresConnection({ url: server.url, schema: 'fuel' });
        onTestFinished(() => connection.close());
        return openPostgresTables(PLAN, { connection });
      };
      await open().write([put(COUNTS, { id: 'all', n: 0 }, 'missing')]);
      const ended = new AbortController();
      const writing = Array.from({ length: WRITERS }, (_, writer) => write(open(), writer, ended.signal));
      for (let kills = 0; kills < KILLS; kills++) {
        await sleep(700);
        await server.kill();
        await sleep(300);
        await server.start();
      }
      await sleep(700);
      ended.abort();
      const told = await Promise.all(writing);
      const tables = open();
      const rows = await tables.find(ROWS, { index: 'key', limit: 1_000_000 });
      const there = new Set(rows.map(({ id }) => id));
      const acknowledged = told.flatMap(({ ids }) => ids);
      expect(acknowledged.filter((id) => !there.has(id))).toEqual([]);
      expect(acknowledged.length).toBeGreaterThan(WRITERS * KILLS);
      const sum = (of: (each: Told) => number): number => told.reduce((all, each) => all + of(each), 0);
      const [{ n } = { n: -1 }] = await tables.get(COUNTS, ['all']);
      expect(n).toBeGreaterThanOrEqual(sum(({ counted }) => counted));
      expect(n).toBeLessThanOrEqual(sum(({ counted, unknown }) => counted + unknown));
      expect(sum(({ unknown }) => unknown)).toBeGreaterThan(0);
    }, 120_000);
  },
);

/** Inserts each row until that succeeds, and raises the count if it is still as it was read. */
async function write(tables: Tables, writer: number, signal: AbortSignal): Promise<Told> {
  const told: Told = { ids: [], counted: 0, unknown: 0 };
  for (let n = 0; !signal.aborted; n++) {
    const id = n * WRITERS + writer;
    try {
      await tables.write([put(ROWS, { id, writer }, 'missing')]);
      told.ids.push(id);
    } catch (error) {
      expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' });
      await sleep(20);
      n -= 1; // the same row once more
      continue;
    }
    const [found] = await tables.get(COUNTS, ['all']).catch(() => []);
    if (found === undefined) continue;
    const raised = [change(COUNTS, 'all', { n: found.n + 1 }, { as: found }), put(ROWS, { id, writer })];
    try {
      const [isDone] = await tables.write(raised, { allOrNone: n % 2 === 0 });
      if (isDone === true) told.counted += 1;
    } catch (error) {
      expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' });
      told.unknown += 1;
    }
  }
  return told;
}
