import { copyFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { onServers } from '../support/engines/test-engines.ts';
import { folder, fuel } from '../support/service/commands.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import {
  importEvents,
  linesOf,
  minutely,
  openAccount,
  walkSeptember,
} from '../support/transactions/e2e-samples.ts';

// A backup is one of embedded files; servers have their own ways.
describe.skipIf(onServers)('fuel store backup', () => {
  const service = new ServiceProcess();
  let key = '';

  const idsIn = (from: ServiceProcess) => walkSeptember(from, key);
  const recordedIn = async (dataDir: string): Promise<number[]> => {
    const { lines } = await fuel(['audit', '--json', '--type', 'TransactionConfirmed'], { dataDir });
    return lines.map(({ data }) => data.transaction_id).sort((a, b) => b - a);
  };

  beforeAll(async () => {
    await service.start();
    ({ key } = await openAccount(service));
    await importEvents(service, minutely(1_000));
  });

  it('made while an import runs can be served directly, with the keys and everything in its log', async () => {
    const importing = service.done(['transaction', 'import', '-'], {
      stdin: linesOf(minutely(12_000, 2_000)),
    });
    const target = join(folder(), 'backup');
    const { code, json, stderr } = await service.fuel(['store', 'backup', target, '--json']);
    expect([code, stderr, json.dir]).toEqual([0, '', target]);
    await importing;
    expect(statSync(target).mode & 0o077).toBe(0);

    const recorded = await recordedIn(target);
    expect(recorded.length).toBeGreaterThanOrEqual(1_000);
    const restored = await new ServiceProcess({ dataDir: target }).start();
    await expect
      .poll(() => idsIn(restored).then((ids) => ids.length), { timeout: 10_000 })
      .toBe(recorded.length);
    expect((await idsIn(restored)).sort((a, b) => b - a)).toEqual(recorded);
    expect(await restored.stop()).toBe(0);
  });

  it('refuses a folder that is not empty, and a data directory without a store', async () => {
    const occupied = folder();
    copyFileSync(join(service.dataDir, 'tls-cert.pem'), join(occupied, 'file'));
    for (const [dataDir, target] of [
      [service.dataDir, occupied],
      [folder(), join(folder(), 'backup')],
    ] as const) {
      const { code, stdout, stderr } = await fuel(['store', 'backup', target], { dataDir });
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toMatch(/\w{3,}/);
    }
    expect(readdirSync(occupied)).toEqual(['file']);
    expect((await fuel(['store', 'backup'], { dataDir: service.dataDir })).code).toBe(2);
  });

  it('of the events alone, restored with a view that is ahead: serve refuses and names the solution, which works', async () => {
    const target = join(folder(), 'older');
    await service.done(['store', 'backup', target]);
    const older = await recordedIn(target);
    await importEvents(service, minutely(50, 100_000));
    expect(await service.stop()).toBe(0);
    for (const suffix of ['', '-wal', '-shm'])
      rmSync(join(service.dataDir, `events.db${suffix}`), { force: true });
    copyFileSync(join(target, 'events.db'), join(service.dataDir, 'events.db'));

    service.launch();
    expect(await service.ended()).toBe(1);
    expect(service.output).toContain('fuel projection rebuild transactions');
    expect(service.output).not.toMatch(/listening.*\n.*projection rebuild/);

    expect((await service.fuel(['projection', 'rebuild', 'transactions'])).code).toBe(0);
    await service.start();
    expect((await idsIn(service)).sort((a, b) => b - a)).toEqual(older);
  });

  it('of another store with this view is refused too', async () => {
    const other = join(folder(), 'other');
    await fuel(['account', 'open', '1', '--name', 'One'], { dataDir: other });
    const stranger = await new ServiceProcess({ dataDir: other }).start();
    expect(await stranger.stop()).toBe(0);
    const viewFiles = (dataDir: string) =>
      readdirSync(dataDir).filter((name) => name.startsWith('transactions'));
    for (const name of viewFiles(other)) rmSync(join(other, name));
    for (const name of viewFiles(service.dataDir)) {
      copyFileSync(join(service.dataDir, name), join(other, name));
    }
    stranger.launch();
    expect(await stranger.ended()).toBe(1);
    expect(stranger.output).toContain('fuel projection rebuild transactions');
  });
});
