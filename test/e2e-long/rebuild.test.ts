import { readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
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
    let walks = 0;
    const paging = (async () => {
      while (!isDone) {
        const ids = await walk();
        walks += 1;
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
    // One walk begins before the switch and one continues after it. Each page is validated, which takes a while.
    await until(() => walks >= 1);
    await sleep(500);
    isDone = true;
    await Promise.all([paging, arriving]);
    expect([code, stderr]).toEqual([0, '']);
    expect(json).toMatchObject({ view: 'transactions', served: true, differences: 0 });
    expect(walks).toBeGreaterThanOrEqual(2);
    const verified = await service.done(['verify', 'view', '--json']);
    expect(verified.json.view.differences).toBe(0);
    const [status] = (await service.done(['projection', 'status', '--json'])).lines;
    expect(status).not.toHaveProperty('rebuild');
    const views = readdirSync(service.dataDir).filter((name) => /^transactions.*\.db$/.test(name));
    if (!onServers) expect(views).toHaveLength(2); // which one is served, and that one
  });
});
