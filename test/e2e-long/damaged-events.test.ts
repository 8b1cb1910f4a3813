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
  async function damaged(damage: (path: string, text: string) => void) {
    const service = new ServiceProcess();
    await service.start();
    const { key } = await openAccount(service);
    await importEvents(service, minutely(COUNT));
    const count = async () =>
      idsOf((await service.get(`/transactions?${SEPTEMBER}&limit=100`, { key })).body).length;
    await until(async () => (await count()) === COUNT);
    await service.stop();
    const file = join(service.dataDir, 'events.db');
    damage(file, '{"transaction_id":50,');
    return { service, count, file };
  }

  it('goes on with all others where one is damaged, and a verification names it', async () => {
    const { service, count } = await damaged(flipData);
    await service.start();
    expect(await count()).toBe(COUNT);
    const { code, stderr } = await service.fuel(['verify', '--repair']);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/event 0 of transaction-\d+ \(position \d+\) cannot be read/),
    ]);
    expect(stderr).toContain('restore events.db from a backup');
    expect(await count()).toBe(COUNT);
    await service.stop();
  });

  it('goes on serving where a whole page is damaged, and doctor and a verification name the file', async () => {
    const { service, count, file } = await damaged(flipPage);
    const { code, lines } = await fuel(['doctor', '--json'], { dataDir: service.dataDir });
    const found = lines.find(({ check }) => check === 'data-directory');
    expect([code, found]).toMatchObject([
      1,
      { ok: false, detail: expect.stringContaining('events.db is damaged') },
    ]);
    expect(found?.do).toContain('restore it from the backup');

    await service.start();
    const { stderr } = await service.fuel(['verify', '--repair']);
    expect(stderr).toContain(`fuel: ${file} is damaged`);
    expect(await count()).toBe(COUNT);
    await service.stop();
  });
});
