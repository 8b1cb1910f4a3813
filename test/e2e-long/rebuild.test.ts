import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { onServers } from '../support/engines/test-engines.ts';
import { startFuel } from '../support/service/commands.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import {
  confirmed,
  importEvents,
  linesOf,
  minutely,
  openAccount,
  voided,
  walkSeptember,
} from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

const COUNT = onServers ? 3_000 : 12_000;
const KILLS = 3;
const REBUILD = ['projection', 'rebuild', 'transactions'] as const;

describe('fuel projection rebuild', () => {
  const service = new ServiceProcess();
  let key = '';

  const walk = () => walkSeptember(service, key);
  const command = (...options: string[]) =>
    startFuel([...REBUILD, ...options, '--json'], { dataDir: service.dataDir });
  const status = async () => (await service.done(['projection', 'status', '--json'])).lines[0];

  /** Changes the rows of the served view behind the service's back. */
  function change(sql: string): void {
    const [served = ''] = readdirSync(service.dataDir).filter((name) => /^transactions.*\.db$/.test(name));
    const db = new DatabaseSync(join(service.dataDir, served), { timeout: 5_000 });
    db.exec(sql);
    db.close();
  }

  beforeAll(async () => {
    await service.start();
    ({ key } = await openAccount(service));
    await importEvents(service, minutely(COUNT));
  }, 60_000);

  it('is not noticed by a client that pages all the while, though it is killed, and records arrive and are voided', async () => {
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
    for (let kill = 1; kill <= KILLS; kill++) {
      const { child, result } = command();
      await sleep(700 + 500 * kill);
      child.kill('SIGKILL');
      await result;
    }
    const { code, stderr, json } = await command().result;
    // One walk that began before, and one that continues after the switch: each page is validated, which takes a while.
    await until(async () => walks >= 1, 60_000);
    await sleep(500);
    isDone = true;
    await Promise.all([paging, arriving]);
    expect([code, stderr]).toEqual([0, '']);
    expect(json).toMatchObject({ view: 'transactions', served: true, differences: 0 });
    expect(walks).toBeGreaterThanOrEqual(2);
    const verified = await service.done(['verify', 'view', '--json']);
    expect(verified.json.view.differences).toBe(0);
    expect(await status()).not.toHaveProperty('rebuild');
  }, 180_000);

  it('is done by one process at a time, and shows how far it is meanwhile', async () => {
    const first = command();
    await until(async () => 'rebuild' in (await status()), 20_000);
    const second = await command().result;
    const refused = 'another process is rebuilding this view';
    // The first may be done within the ten seconds that the second waits for a lease.
    if (second.code !== 0) expect(second.stderr).toContain(refused);
    expect((await first.result).code).toBe(0);
  }, 60_000);

  it.skipIf(onServers)(
    'names what differs from the view that was served, and serves the new one when told to',
    async () => {
      change('DELETE FROM transactions WHERE id IN (5, 6)');
      const before = await walk();
      const { code, json, stderr } = await command().result;
      expect([code, json]).toMatchObject([1, { served: false, differences: 2 }]);
      expect(stderr).toContain('transaction 5 of account 7: only the new view shows it');
      expect(await walk()).toEqual(before);
      expect(await status()).toMatchObject({ unfinished_rebuild_percent: 100 });
      const accepted = await command('--accept').result;
      expect([accepted.code, accepted.json]).toMatchObject([0, { served: true, differences: 2 }]);
      expect(await walk()).toEqual(expect.arrayContaining([5, 6]));
    },
    60_000,
  );

  it.skipIf(onServers)(
    'happens by itself, without a 503, where records are rendered otherwise now',
    async () => {
      await service.stop();
      change('UPDATE checkpoint SET rendering = rendering - 1');
      await service.start();
      const rebuilt = async () =>
        (await service.done(['audit', '--json', '--type', 'ViewRebuilt'])).lines.filter(
          ({ data }) => data.reason === 'records are rendered otherwise now',
        );
      const paging = (async () => {
        while ((await rebuilt()).length === 0) await walk();
      })();
      await importEvents(service, [confirmed(950_000, { created_at: '2026-09-29T00:00:00Z' })]);
      await paging;
      expect(await walk()).toContain(950_000);
      await service.operator.import(linesOf([voided(950_000)]), { wait: true });
      expect(await walk()).not.toContain(950_000);
      expect(readdirSync(service.dataDir).filter((name) => /^transactions.*\.db$/.test(name))).toHaveLength(
        1,
      );
    },
    60_000,
  );
});
