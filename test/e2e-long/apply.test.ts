import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { onServers } from '../support/engines/test-engines.ts';
import { folder, startFuel } from '../support/service/commands.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import { SEPTEMBER } from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

/** Enough for a signal to arrive before the end. On servers each account takes longer. */
const COUNT = onServers ? 1_200 : 5_000;

const accounts = (count: number): string =>
  Array.from({ length: count }, (_, index) => {
    const id = index + 1;
    const line = {
      account_id: id,
      name: `Customer ${id}`,
      integration: 'on',
      profiles: [{ profile: 'basic', from: '2026-01-01T00:00:00Z', to: null }],
      corporates: [{ id, name: 'Head Office', group_id: null }],
    };
    return `${JSON.stringify(line)}\n`;
  }).join('');

describe('fuel account apply, while the service runs', () => {
  const service = new ServiceProcess();

  beforeAll(async () => {
    await service.start();
  });

  it('gives every account its access at once', async () => {
    const applied = await service.fuel(['account', 'apply', '-', '--json', '--wait'], {
      stdin: accounts(1_200),
    });
    expect([applied.code, applied.stdout, applied.stderr]).toEqual([
      0,
      '{"applied":1200,"unchanged":0,"refused":0}\n',
      '',
    ]);
    const { json } = await service.done(['key', 'issue', '1200', '--json', '--wait']);
    const list = () => service.get(`/transactions?${SEPTEMBER}&corporate_id=1200`, { key: json.key });
    expect((await list()).status).toBe(200);
    const off = '{"account_id":1200,"integration":"off"}\n';
    await service.fuel(['account', 'apply', '-', '--wait'], { stdin: off });
    expect((await list()).body.error.code).toBe('API_INTEGRATION_NOT_ENABLED');
  });
});

it('continues after SIGINT where it was', async () => {
  const place = folder();
  const dataDir = join(place, 'data');
  const file = join(place, 'accounts.jsonl');
  const text = accounts(COUNT);
  writeFileSync(file, text);
  const service = new ServiceProcess({ dataDir });
  const { child, result } = startFuel(['account', 'apply', file, '--json'], { dataDir });
  await until(
    async () =>
      (await service.operator.with((engines) => engines.store().readStream('account-1'))).length > 0,
  );
  child.kill('SIGINT');
  const { code, stderr } = await result;
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/interrupted: run the same command again to continue\n$/),
  ]);
  const second = await service.done(['account', 'apply', file, '--json']);
  expect(second.json.refused).toBe(0);
  expect(second.json.unchanged).toBeGreaterThan(0);
  expect(second.json.applied).toBeGreaterThan(0);
  expect(second.json.applied + second.json.unchanged).toBe(COUNT);
  expect((await service.done(['account', 'export'])).lines).toHaveLength(COUNT);
});
