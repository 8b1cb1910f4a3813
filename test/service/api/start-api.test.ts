import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { Directory } from '../../../projections/directory.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { loadConfig } from '../../../src/base/config/config.ts';
import { claimPort, listen } from '../../../src/base/listen.ts';
import { silentLog } from '../../../src/base/log.ts';
import { openEngines } from '../../../src/engines/engines.ts';
import { ApiThreads } from '../../../src/service/api/api-threads.ts';
import { startApi } from '../../../src/service/api/start-api.ts';
import { createMetrics } from '../../../src/service/ops/metrics.ts';
import { Standing } from '../../../src/service/ops/standing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

test('an API of which a thread fails fails with its error, and still stops', async () => {
  const env = { FUEL_DATA_DIR: temporaryFolder(), FUEL_LISTEN: '127.0.0.1:0', FUEL_LOG_LEVEL: 'silent' };
  const config = loadConfig(env, 'serve');
  const engines = await openEngines(config, systemClock);
  onTestFinished(() => engines.close());
  const metrics = createMetrics();
  const standing = new Standing();
  const threads = new ApiThreads({
    config,
    names: ['api-2'],
    standing,
    directory: undefined,
    metrics,
    onMoved: () => undefined,
  });
  const api = await startApi({
    ...{ config, engines, directory: new Directory(), metrics, threads },
    availability: { state: () => 'unavailable' },
    log: silentLog,
    clock: systemClock,
  });
  threads.reload({ cert: 'no certificate', key: 'no key' });
  await expect(api.failed).rejects.toThrow(/PEM/);
  await api.stop();
  await expect(fetch(api.url)).rejects.toThrow('fetch failed');
});

/** An API on this address whose further threads do what a test says. */
async function apiWith(threads: Partial<ApiThreads>, listenOn = '127.0.0.1:0') {
  const env = { FUEL_DATA_DIR: temporaryFolder(), FUEL_LISTEN: listenOn, FUEL_LOG_LEVEL: 'silent' };
  const config = loadConfig(env, 'serve');
  const engines = await openEngines(config, systemClock);
  onTestFinished(() => engines.close());
  return startApi({
    ...{ config, engines, directory: new Directory(), metrics: createMetrics() },
    threads: { failed: new Promise<never>(() => undefined), ...threads } as ApiThreads,
    availability: { state: () => 'unavailable' },
    log: silentLog,
    clock: systemClock,
  });
}

test('an API whose threads do not start stops what it has started, and takes its port no longer', async () => {
  let [port, stops] = [0, 0];
  const starting = apiWith({
    start: async ({ address }) => {
      port = address.port;
      throw new Error('no memory');
    },
    async stop() {
      stops += 1;
    },
  });
  await expect(starting).rejects.toThrow('no memory');
  expect(stops).toBe(1);
  expect(await claimPort({ host: '127.0.0.1', port })).toEqual({ host: '127.0.0.1', port });
});

test('an API that stops has stopped its threads', async () => {
  const steps: string[] = [];
  const api = await apiWith({
    start: async () => undefined,
    stop: async () => {
      await new Promise(setImmediate);
      steps.push('threads');
    },
  });
  await api.stop();
  expect(steps).toEqual(['threads']);
});

test('a port on which another server listens is refused, also where that one shares it', async () => {
  const other = createServer();
  onTestFinished(() => void other.close());
  const { port } = await listen(other, { host: '127.0.0.1', port: 0, reusePort: true });
  await expect(apiWith({}, `127.0.0.1:${port}`)).rejects.toMatchObject({ code: 'REFUSED' });
});
