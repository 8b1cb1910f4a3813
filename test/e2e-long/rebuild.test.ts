import { readdirSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { onServers } from '../support/engines/test-engines.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import {
  confirmed,
  idsOf,
  importEvents,
  minutely,
  openAccount,
  SEPTEMBER,
  voided,
} from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

const COUNT = onServers ? 3_000 : 12_000;
const REBUILD = ['projection', 'rebuild', 'transactions'] as const;

describe('fuel projection rebuild', () => {
  const service = new ServiceProcess();
  let key = '';

  /** Returns the ids of September, read page by page as a customer does. */
  async function walk(): Promise<number[]> {
    const ids: number[] = [];
    let cursor = '';
    for (;;) {
      const { status, body } = await service.get(`/transactions?${SEPTEMBER}&limit=100${cursor}`, { key });
      expect([status, body]).toEqual([200, expect.anything()]);
      ids.push(...idsOf(body));
      if (!body.pagination.has_more) return ids;
      cursor = `&cursor=${encodeURIComponent(body.pagination.next_cursor)}`;
    }
  }

  beforeAll(async () => {
    await service.start();
    ({ key } = await openAccount(service));
    await importEvents(service, minutely(COUNT));
  });

  it('is not noticed by a client that pages all the while, though records arrive and are voided', async () => {
    const stable = (await walk()).filter((id) => id % 10 !== 0);
    let isDone = false;
    const paging = (async () => {
      for (let isLast = false; !isLast; ) {
        isLast = isDone; // the last walk begins after the switch
        const ids = await walk();
        expect(new Set(ids).size).toBe(ids.length);
        const seen = new Set(ids);
        expect(stable.filter((id) => !seen.has(id))).toEqual([]);
      }
    })();
    paging.catch(() => undefined); // awaited below
    const arriving = (async () => {
      for (let n = 1; !isDone; n++) {
        const arrived = confirmed(900_000 + n, { created_at: '2026-09-29T00:00:00Z' });
        await importEvents(service, [arrived, voided(n * 10)]);
      }
    })();
    arriving.catch(() => undefined);
    const { code, stderr, json } = await service.fuel([...REBUILD, '--json']);
    isDone = true;
    await Promise.all([paging, arriving]);
    expect([code, stderr]).toEqual([0, '']);
    expect(json).toMatchObject({ view: 'transactions', served: true });
    const verified = await service.done(['verify', 'view', '--json']);
    expect(verified.json.view.differences).toBe(0);
    const [status] = (await service.done(['projection', 'status', '--json'])).lines;
    expect(status).not.toHaveProperty('rebuild');
    const views = () => readdirSync(service.dataDir).filter((name) => /^transactions.*\.db$/.test(name));
    if (!onServers) await until(() => views().length === 2); // which one is served, and that one, once the former is removed
  });
});
