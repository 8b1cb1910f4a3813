import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { StartedParts } from '../../../src/service/started-parts.ts';
import { lastingPort } from '../../support/lasting-port.ts';
import { runInProcess } from '../../support/service/in-process.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { until } from '../../support/waiting.ts';

afterEach(() => void vi.restoreAllMocks());

/** The exit code of `fuel serve` that is asked to stop once it answers. */
async function stopped(): Promise<number | null> {
  const ops = `127.0.0.1:${await lastingPort()}`;
  const others = process.listeners('SIGTERM');
  const env = {
    ...process.env,
    FUEL_DATA_DIR: join(temporaryFolder(), 'data'),
    FUEL_OPS_LISTEN: ops,
    FUEL_LOG_LEVEL: 'silent',
  };
  const served = runInProcess(['serve', '--role', 'notices'], { env });
  await until(async () => {
    const answer = await fetch(`http://${ops}/readyz`).catch(() => undefined);
    return answer?.status === 200;
  });
  for (const asked of process.listeners('SIGTERM')) if (!others.includes(asked)) asked('SIGTERM');
  return (await served).code;
}

test('a service that was asked to stop exits 0 when all of it has stopped', async () => {
  expect(await stopped()).toBe(0);
});

test('a service of which a part did not stop in order exits 1', async () => {
  const { stop } = StartedParts.prototype;
  vi.spyOn(StartedParts.prototype, 'stop').mockImplementation(async function (this: StartedParts) {
    await stop.call(this);
    throw new AggregateError([new Error('locked')]);
  });
  expect(await stopped()).toBe(1);
});
