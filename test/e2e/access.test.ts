import { beforeAll, describe, expect, it } from 'vitest';
import { ServiceProcess } from '../support/service/service-process.ts';
import { openAccount, SEPTEMBER } from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

describe('access in staging', () => {
  const service = new ServiceProcess();
  let key = '';
  let prefix = '';

  const pull = (by: string) => service.get(`/transactions?${SEPTEMBER}`, { key: by });

  beforeAll(async () => {
    await service.start();
    ({ key, prefix } = await openAccount(service));
  });

  it('ends with a key that is switched off, and returns with it, once --wait returns', async () => {
    await service.done(['key', 'off', prefix, '--wait']);
    expect((await pull(key)).body.error.code).toBe('INVALID_API_KEY');
    await service.done(['key', 'on', prefix, '--wait']);
    expect((await pull(key)).status).toBe(200);
  });

  it('leaves what a key was used for, refused requests too, and not what came with a wrong secret', async () => {
    const own = await openAccount(service, { id: 66 });
    await pull(own.key);
    await pull(`svc_test_${own.prefix}_${'a'.repeat(43)}`);
    await service.get(`/transactions?${SEPTEMBER}&corporate_id=5`, { key: own.key });
    await service.done(['key', 'off', own.prefix, '--wait']);
    await pull(own.key);
    const requests = async () => (await service.done(['key', 'requests', own.prefix, '--json'])).lines;
    await until(async () => (await requests()).length === 3);
    const range = { from: '2026-09-01T00:00:00.000Z', to: '2026-09-30T23:59:59.999Z' };
    const from = { at: expect.any(String), address: '127.0.0.1' };
    const [newest, ...others] = await requests();
    expect([newest, ...others]).toMatchObject([
      { ...from, status: 401, code: 'INVALID_API_KEY', rows: null, from: null },
      { ...from, status: 404, code: 'CORPORATE_NOT_FOUND', rows: null, ...range, corporate_id: [5] },
      { ...from, status: 200, code: null, rows: 0, ...range, corporate_id: null, after: null },
    ]);
    const since = await service.done(['key', 'requests', own.prefix, '--since', newest.at, '--json']);
    expect(since.lines).toEqual([newest]);
    const used = { last_used_at: newest.at, last_used_from: '127.0.0.1' };
    expect((await service.done(['key', 'list', '--account', '66', '--json'])).json).toMatchObject(used);
    expect((await service.done(['key', 'show', own.prefix, '--json'])).json).toMatchObject(used);
  });
});
