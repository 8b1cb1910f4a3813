import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { folder, startFuel } from '../support/service/commands.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import {
  type EventLine,
  idsOf,
  linesOf,
  minutely,
  openAccount,
} from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

const COUNT = 20_000;
const FIRST_ID = 1_000_000;
/** Long enough for a busy machine. */
const SOON_MS = 30_000;

describe('SIGKILL', () => {
  const service = new ServiceProcess();
  let key = '';

  const pull = (query: string) => service.get(`/transactions?${query}`, { key });
  const allIds = async (query: string): Promise<number[]> => {
    const ids: number[] = [];
    let cursor = '';
    for (;;) {
      const { body } = await pull(`${query}&limit=100${cursor}`);
      ids.push(...idsOf(body));
      if (!body.pagination.has_more) return ids;
      cursor = `&cursor=${encodeURIComponent(body.pagination.next_cursor)}`;
    }
  };

  beforeAll(async () => {
    await service.start();
    ({ key } = await openAccount(service));
  });

  it('of an import leaves what was recorded; the same file again records exactly the rest', async () => {
    const file = join(folder(), 'big.jsonl');
    writeFileSync(file, linesOf(minutely(COUNT, FIRST_ID)));
    const first = startFuel(['transaction', 'import', file, '--json'], { dataDir: service.dataDir });
    await service.operator.with(async (engines) => {
      const stream = `transaction-${FIRST_ID + 2_000}`;
      await until(async () => (await engines.store().readStream(stream)).length > 0, SOON_MS);
    });
    first.child.kill('SIGKILL');
    const killed = await first.result;
    expect([killed.code, killed.stdout]).toEqual([null, '']);

    const args = ['transaction', 'import', file, '--json', '--wait'];
    const { recorded, unchanged, refused } = (await service.done(args)).json;
    expect([recorded + unchanged, refused]).toEqual([COUNT, 0]);
    expect(recorded).toBeGreaterThan(0);
    expect(unchanged).toBeGreaterThan(0);
    expect((await service.done(args)).json).toEqual({ recorded: 0, unchanged: COUNT, refused: 0 });

    const expected = Array.from({ length: COUNT }, (_, index) => FIRST_ID + COUNT - 1 - index);
    expect(await allIds('from=2026-09-01T00:00:00Z&to=2026-10-01T00:00:00Z')).toEqual(expected);
  }, 120_000);

  it('of the service while it projects loses nothing and shows nothing twice', async () => {
    const day = 'from=2026-08-01T00:00:00Z&to=2026-08-31T00:00:00Z';
    const august = minutely(3_000, 1).map(
      ({ type, data }): EventLine => ({
        type,
        data: { ...data, created_at: String(data.created_at).replace('2026-09', '2026-08') },
      }),
    );
    const importing = service.done(['transaction', 'import', '-'], { stdin: linesOf(august) });
    await until(async () => (await pull(day)).body.data.length > 0, SOON_MS);
    await service.kill();
    await service.start();
    await importing;
    await service.restart();
    const expected = august.map(({ data }) => data.transaction_id).reverse();
    await until(async () => (await allIds(day)).length === expected.length, SOON_MS);
    expect(await allIds(day)).toEqual(expected);
  }, 120_000);

  it('of the service loses no key, and a cursor outlives it', async () => {
    const range = 'from=2026-09-01T00:00:00Z&to=2026-09-02T00:00:00Z&limit=10';
    const { body } = await pull(range);
    await service.restart();
    const next = await pull(`${range}&cursor=${encodeURIComponent(body.pagination.next_cursor)}`);
    expect(next.status).toBe(200);
    expect(idsOf(next.body)[0]).toBe((idsOf(body).at(-1) ?? 0) - 1);
  });
});
