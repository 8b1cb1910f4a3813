import { existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { Directory } from '../../../src/accounts/directory/fold/directory.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { claimPort, listen } from '../../../src/base/listen.ts';
import { silentLog } from '../../../src/base/log.ts';
import { loadConfig, openEngines } from '../../../src/engines/engines.ts';
import { THREAD_ENTRY } from '../../../src/operator/serve/threads.ts';
import { startApi } from '../../../src/service/api/start-api.ts';
import { createMetrics } from '../../../src/service/ops/metrics.ts';
import { Standing } from '../../../src/service/ops/standing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const FAILS = "throw new Error('no memory');";

/** Starts an API on this address; its further threads run this text, or what they always do. */
async function apiWith({
  text,
  threads = ['api-2'],
  listenOn = '127.0.0.1:0',
  signal = new AbortController().signal,
}: {
  readonly text?: string;
  readonly threads?: readonly string[];
  readonly listenOn?: string;
  readonly signal?: AbortSignal;
}) {
  const env = { FUEL_DATA_DIR: temporaryFolder(), FUEL_LISTEN: listenOn, FUEL_LOG_LEVEL: 'silent' };
  const config = loadConfig(env, 'serve');
  const engines = await openEngines(config, systemClock);
  onTestFinished(() => engines.close());
  let entry = THREAD_ENTRY;
  if (text !== undefined) {
    const file = join(temporaryFolder(), 'job.mjs');
    writeFileSync(file, `import { parentPort, workerData } from 'node:worker_threads';\n${text}`);
    entry = pathToFileURL(file);
  }
  const onMoved = (): void => undefined;
  return startApi({
    ...{
      config,
      engines,
      directory: new Directory(),
      metrics: createMetrics(),
      log: silentLog,
      clock: systemClock,
    },
    availability: () => 'unavailable',
    host: { entry, config, holder: 'this' },
    signal,
    threads,
    ofThreads: { standing: new Standing().memory, directory: undefined, onMoved, onMetrics: onMoved },
  });
}

test('an API of which a thread fails fails with its error, and still stops', async () => {
  const text = `parentPort.postMessage({ kind: 'listening' }); setTimeout(() => { ${FAILS} }, 50);`;
  const api = await apiWith({ text });
  await expect(api.failed).rejects.toThrow('no memory');
  await api.stop();
  await expect(fetch(api.url)).rejects.toThrow('fetch failed');
});

test('an API whose threads do not start stops what it has started, and takes its port no longer', async () => {
  const { port } = await claimPort({ host: '127.0.0.1', port: 0 });
  await expect(apiWith({ text: FAILS, listenOn: `127.0.0.1:${port}` })).rejects.toThrow('no memory');
  expect(await claimPort({ host: '127.0.0.1', port })).toEqual({ host: '127.0.0.1', port });
});

test('an API that is ended while its threads start stops what it has started, and says why', async () => {
  const { port } = await claimPort({ host: '127.0.0.1', port: 0 });
  const text = `parentPort.once('message', () => parentPort.close());`; // never listens
  const signal = AbortSignal.timeout(300);
  await expect(apiWith({ text, signal, listenOn: `127.0.0.1:${port}` })).rejects.toThrow('timeout');
  expect(await claimPort({ host: '127.0.0.1', port })).toEqual({ host: '127.0.0.1', port });
});

test('an API that stops has stopped its threads', async () => {
  const file = join(temporaryFolder(), 'stopped');
  const text = `import { writeFileSync } from 'node:fs';
    parentPort.postMessage({ kind: 'listening' });
    parentPort.once('message', () => setTimeout(() => { writeFileSync(${JSON.stringify(file)}, ''); parentPort.close(); }, 50));`;
  const api = await apiWith({ text });
  await api.stop();
  expect(existsSync(file)).toBe(true);
});

test('a port on which another server listens is refused, also where that one shares it', async () => {
  const other = createServer();
  onTestFinished(() => void other.close());
  const { port } = await listen(other, { host: '127.0.0.1', port: 0, reusePort: true });
  await expect(apiWith({ listenOn: `127.0.0.1:${port}` })).rejects.toMatchObject({ code: 'REFUSED' });
});

test('an API of which one thread does not start has stopped the others when its start fails', async () => {
  const file = join(temporaryFolder(), 'stopped');
  const text = `import { writeFileSync } from 'node:fs';
    if (workerData.name === 'api-3') throw new Error('no memory');
    parentPort.postMessage({ kind: 'listening' });
    parentPort.once('message', () => setTimeout(() => { writeFileSync(${JSON.stringify(file)}, ''); parentPort.close(); }, 50));`;
  await expect(apiWith({ text, threads: ['api-2', 'api-3'] })).rejects.toThrow('no memory');
  expect(existsSync(file)).toBe(true);
});
