import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PROCESS_MAX_AGE_MS } from '../../src/base/coordination/coordination.ts';
import { PROJECTOR_LEASE } from '../../src/pull/view/projector.ts';
import { folder, fuel } from '../support/service/commands.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import {
  confirmed,
  idsOf,
  importEvents,
  linesOf,
  minutely,
  openAccount,
  SEPTEMBER,
} from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

const TAKEN_OVER_WITHIN_MS = 5_000;

describe('several processes on one data directory', () => {
  it('start at once on an empty one, and agree on everything they make', async () => {
    for (let round = 0; round < 2; round++) {
      const dataDir = join(folder(), 'data');
      const services = [1, 2, 3].map(() => new ServiceProcess({ dataDir }));
      await Promise.all(services.map((service) => service.start()));
      const [one] = services;
      const { key } = await openAccount(one as ServiceProcess);
      await importEvents(one as ServiceProcess, minutely(3));
      const page = (service: ServiceProcess, cursor = '') =>
        service.get(`/transactions?${SEPTEMBER}&limit=1${cursor}`, { key });
      let cursor = '';
      for (const service of services) {
        const { status, body } = await page(service, cursor);
        expect(status).toBe(200);
        cursor = `&cursor=${encodeURIComponent(body.pagination.next_cursor ?? '')}`;
      }
      const { lines } = await fuel(['audit', '--json', '--type', 'StoreNamed'], { dataDir });
      expect(lines).toHaveLength(1);
      await Promise.all(services.map((service) => service.kill()));
    }
  });

  it('have one active projector; another takes over within 5 s when it is killed', async () => {
    const dataDir = join(folder(), 'data');
    const first = await new ServiceProcess({ dataDir }).start();
    const { key, prefix } = await openAccount(first);
    const second = await new ServiceProcess({ dataDir }).start();
    const lease = () =>
      second.operator.with(async (engines) => engines.coordination().holder(PROJECTOR_LEASE));
    const active = await lease();
    expect(active?.holder).toContain(`-${first.pid}-`);
    const renewedTwice = (active?.expiresAtMs ?? 0) + 1_500;
    await until(async () => ((await lease())?.expiresAtMs ?? 0) > renewedTwice, 15_000);
    expect((await lease())?.holder).toBe(active?.holder);

    await importEvents(second, minutely(500));
    const importing = second.fuel(['transaction', 'import', '-', '--json'], {
      stdin: linesOf(minutely(5_000, 10_000)),
    });
    const killedAtMs = Date.now();
    await first.kill();
    await until(
      async () => (await lease())?.holder.includes(`-${second.pid}-`) === true,
      TAKEN_OVER_WITHIN_MS - (Date.now() - killedAtMs),
    );
    expect((await importing).json.recorded).toBe(5_000);
    await second.done(['transaction', 'import', '-'], { stdin: linesOf([confirmed(999_999)]) });
    await until(async () => {
      const { body } = await second.get(`/transactions?${SEPTEMBER}&limit=1`, { key });
      return idsOf(body)[0] === 999_999 || body.data[0].id === 14_999;
    }, 15_000);
    const { lines } = await second.done(['projection', 'status', '--json']);
    expect(lines[0].holder).toContain(`-${second.pid}-`);

    // A process that ended delays a waiting command only until it counts as ended.
    const goneAtMs = Math.max(Date.now(), killedAtMs + PROCESS_MAX_AGE_MS);
    await second.done(['key', 'off', prefix, '--wait']);
    expect(Date.now()).toBeLessThan(goneAtMs + 3_000);
    expect((await second.get(`/transactions?${SEPTEMBER}`, { key })).status).toBe(401);
  });

  it('pass the projector on at once when the active one is asked to stop', async () => {
    const dataDir = join(folder(), 'data');
    const first = await new ServiceProcess({ dataDir }).start();
    const { key } = await openAccount(first);
    const second = await new ServiceProcess({ dataDir }).start();
    expect(await first.stop()).toBe(0);
    await importEvents(second, [confirmed(501)]);
    const { body } = await second.get(`/transactions?${SEPTEMBER}`, { key });
    expect(idsOf(body)).toEqual([501]);
  });

  it('may each have some of the roles', async () => {
    const dataDir = join(folder(), 'data');
    const projector = await new ServiceProcess({ dataDir, args: ['--role', 'projector'] }).start();
    const api = await new ServiceProcess({ dataDir, args: ['--role', 'api'] }).start();
    expect(projector.url).toBe('');
    const { key } = await openAccount(api);
    await importEvents(api, [confirmed(501)]);
    const answered = async () => (await api.get(`/transactions?${SEPTEMBER}`, { key })).body.data.length;
    expect(await answered()).toBe(1);
    await projector.kill();
    await api.done(['transaction', 'import', '-'], { stdin: linesOf([confirmed(502)]) });
    expect(await answered()).toBe(1);
    await projector.start();
    await until(async () => (await answered()) === 2, 15_000);
  });

  it('keep the certificate and the master key that the first process generated', async () => {
    const dataDir = join(folder(), 'data');
    const service = await new ServiceProcess({ dataDir, makesCertificate: true }).start();
    const read = () =>
      ['tls-cert.pem', 'tls-key.pem'].map((name) => readFileSync(join(dataDir, name), 'utf8'));
    const before = read();
    await service.restart();
    expect(read()).toEqual(before);
  });
});
