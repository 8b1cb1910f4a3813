import { once } from 'node:events';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { systemClock } from '../../src/base/clock.ts';
import { openEngines } from '../../src/engines/engines.ts';
import { appendSteadily } from './append-steadily.ts';
import { percentile, print, reportBelow, show } from './pairs.ts';
import { startReceivers } from './receivers.ts';
import { startServe } from './serve.ts';
import { setUpWebhooks } from './webhook-sample.ts';

const HEALTHY = 10;
const WORST = 16;
const PER_SECOND = 100;
const SECONDS = 10;

/** Measures from `append` to the healthy receivers' requests, without and with sixteen receivers that cost the most. */
export async function compareWorstReceivers(folder: string): Promise<boolean> {
  const receivers = await startReceivers(folder, HEALTHY);
  const files = { caFile: receivers.caFile, keyFile: join(folder, 'receivers.key') };
  const worst = new Worker(join(import.meta.dirname, 'worst-receiver.ts'), {
    workerData: { count: WORST, ...files },
  });
  const [ports] = (await once(worst, 'message')) as [readonly number[]];
  const dataDir = join(folder, 'data');
  const urls = [...receivers.urls, ...ports.map((port) => `https://127.0.0.1:${port}/fuel-events`)];
  const { config, env, next } = await setUpWebhooks(dataDir, { urls, caFile: files.caFile });
  const engines = await openEngines(config, systemClock);
  const serve = await startServe({ dataDir, env });
  const p99Ms = async (what: string): Promise<number> => {
    const transactions = next(PER_SECOND * SECONDS);
    const owed = transactions.filter(({ receiver }) => receiver < HEALTHY);
    const ids = new Set(owed.map(({ deliveryId }) => deliveryId));
    const appended = await appendSteadily(engines.store(), transactions, { perSecond: PER_SECOND });
    const times: number[] = [];
    while (ids.size > 0) {
      for (const { id, atMs } of await receivers.take(1)) {
        if (ids.delete(id)) times.push(atMs - (appended.get(id) ?? Number.NaN));
      }
    }
    print(`  ${what}: p50 ${show(percentile(times, 50))} ms, p99 ${show(percentile(times, 99))} ms`);
    return percentile(times, 99);
  };
  try {
    await p99Ms('warm-up');
    const alone = await p99Ms('all answer well');
    worst.postMessage('be hostile');
    const value = (await p99Ms('beside the worst')) - alone;
    return reportBelow({
      what: 'healthy receivers beside 16 of the worst, p99',
      unit: 'ms more',
      value,
      limit: 50,
    });
  } finally {
    await serve.stop();
    await engines.close();
    await worst.terminate();
    await receivers.stop();
  }
}
