import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { appendToArrival } from '../support/append-to-arrival.ts';
import { startEngineWebhooks } from '../support/engine-webhooks.ts';
import { type Verdict, withEngines } from '../support/engines.ts';
import { percentile, print, reportBelow, show } from '../support/pairs.ts';
import { processorTimeMs } from '../support/process-figures.ts';
import { startReceivers } from '../support/receivers.ts';
import { startServe } from '../support/serve.ts';

const WEBHOOKS = 10;
const SETTLE_MS = 5_000;
const IDLE_MS = 20_000;

/**
 * Measures on the engines from the call of `append` to the request at the receiver, and the cost of an idle service.
 */
export async function run(): Promise<Verdict> {
  return withEngines(async (env, folder) => {
    const receivers = await startReceivers(folder, WEBHOOKS);
    const dataDir = join(folder, 'data');
    const setUp = await startEngineWebhooks(dataDir, receivers, env);
    const serve = await startServe({ dataDir, env: setUp.env });
    try {
      const timesMs = await appendToArrival(setUp, receivers);
      const [p50 = Number.NaN, p99 = Number.NaN, longest = Number.NaN] = [50, 99, 100].map((percent) =>
        percentile(timesMs, percent),
      );
      print(`  longest ${show(longest)} ms, ${timesMs.length} events`);
      const idle = await idleShare(serve.pid);
      return [
        reportBelow({ what: 'append to arrival on the engines, p50', value: p50, unit: 'ms', limit: 5 }),
        reportBelow({ what: 'append to arrival on the engines, p99', value: p99, unit: 'ms', limit: 20 }),
        reportBelow({ what: 'idle fuel serve on the engines', value: idle, unit: '% of a core', limit: 1.5 }),
      ].every((met) => met);
    } finally {
      await serve.stop();
      await receivers.stop();
    }
  });
}

async function idleShare(pid: number): Promise<number> {
  await sleep(SETTLE_MS);
  const beforeMs = processorTimeMs(pid);
  await sleep(IDLE_MS);
  return (100 * (processorTimeMs(pid) - beforeMs)) / IDLE_MS;
}
