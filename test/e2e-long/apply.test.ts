import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { onServers } from '../support/engines/test-engines.ts';
import { folder, startFuel } from '../support/service/commands.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
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
    expect.stringMatching(/Interrupted: run the same command again to continue\n$/),
  ]);
  const second = await service.done(['account', 'apply', file, '--json']);
  expect(second.json.refused).toBe(0);
  expect(second.json.unchanged).toBeGreaterThan(0);
  expect(second.json.applied).toBeGreaterThan(0);
  expect(second.json.applied + second.json.unchanged).toBe(COUNT);
  expect((await service.done(['account', 'export'])).lines).toHaveLength(COUNT);
});
