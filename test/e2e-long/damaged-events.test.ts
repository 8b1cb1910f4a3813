import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { onServers } from '../support/engines/test-engines.ts';
import { flipData, flipPage } from '../support/event-store/flip-bytes.ts';
import { fuel } from '../support/service/commands.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import {
  idsOf,
  importEvents,
  minutely,
  openAccount,
  SEPTEMBER,
} from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

const COUNT = 100;

describe.skipIf(onServers)('a service whose events are damaged', () => {
  it.each([
    ['in one event', flipData],
    ['in a whole page', flipPage],
  ])('goes on with all others, and names the damage everywhere: %s', async (_, damage) => {
    const service = new ServiceProcess();
    await service.start();
    const { key } = await openAccount(service);
    await importEvents(service, minutely(COUNT));
    const count = async () =>
      idsOf((await service.get(`/transactions?${SEPTEMBER}&limit=100`, { key })).body).length;
    await until(async () => (await count()) === COUNT);
    await service.stop();
    damage(join(service.dataDir, 'events.db'), '{"transaction_id":50,');

    const named = /event 0 of transaction-\d+ \(position \d+\) cannot be read/;
    const { code, lines } = await fuel(['doctor', '--json'], { dataDir: service.dataDir });
    const store = lines.find(({ check }) => check === 'store');
    expect([code, store]).toMatchObject([1, { ok: false, detail: expect.stringMatching(named) }]);
    expect(store?.do).toContain('restore events.db from a backup');

    await service.start();
    const { text } = await service.ops('/');
    expect(text).toMatch(named);
    expect(await count()).toBe(COUNT);
    expect((await service.fuel(['verify', '--repair'])).stderr).toMatch(named);
    expect(await count()).toBe(COUNT);
    await service.stop();
  });
});
