import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../src/base/clock.ts';
import { openEngines } from '../src/engines/engines.ts';
import { deliver, rateOf } from './support/deliver.ts';
import { newestPages } from './support/newest-pages.ts';
import { PageClient } from './support/page-client.ts';
import { median, print, show } from './support/pairs.ts';
import { processorTimeMs } from './support/process-figures.ts';
import { startReceivers } from './support/receivers.ts';
import { inScratchFolder } from './support/scratch.ts';
import { startServe } from './support/serve.ts';
import { setUpWebhooks } from './support/webhook-sample.ts';

const TRANSACTIONS = Number(process.env.BENCH_DELIVERIES ?? 10_000);
const WEBHOOKS = 10;
const RUNS = 5;
const CONNECTIONS = 8;
const PAGES_MS = 4_000;
const SERVICE_CORE = 0;
const OTHERS_CORE = 1;

/**
 * Measures what `fuel serve` in all roles does on one core, with the import, the receivers and the customers on
 * another: figures that can be multiplied for other machines. It has no limit, and needs two cores and `taskset`.
 */
export async function run(): Promise<boolean | 'not run'> {
  if (!pin(process.pid, OTHERS_CORE)) {
    print('  needs taskset (util-linux) and two cores');
    return 'not run';
  }
  return inScratchFolder(async (folder) => {
    const receivers = await startReceivers(folder, WEBHOOKS);
    const dataDir = join(folder, 'data');
    mkdirSync(dataDir, { mode: 0o700 });
    const setUp = await setUpWebhooks(dataDir, receivers);
    const engines = await openEngines(setUp.config, systemClock);
    const serve = await startServe({ dataDir, env: setUp.env });
    pin(serve.pid, SERVICE_CORE);
    try {
      await deliver(engines, receivers, setUp.next(TRANSACTIONS)); // warms up
      const rates: number[] = [];
      const costs: number[] = [];
      for (let run = 0; run < RUNS; run++) {
        const beforeMs = processorTimeMs(serve.pid);
        rates.push(rateOf(await deliver(engines, receivers, setUp.next(TRANSACTIONS))));
        costs.push(((processorTimeMs(serve.pid) - beforeMs) * 1_000) / TRANSACTIONS);
      }
      report('deliveries', rates, costs);
      await reportPages(serve, setUp.keys);
      return true;
    } finally {
      await serve.stop();
      await engines.close();
      await receivers.stop();
    }
  });
}

async function reportPages(serve: { url: string; pid: number }, keys: readonly string[]): Promise<void> {
  const client = new PageClient(serve.url, CONNECTIONS);
  const next = newestPages(keys);
  const rates: number[] = [];
  const costs: number[] = [];
  await client.load({ durationMs: PAGES_MS, next });
  for (let run = 0; run < RUNS; run++) {
    const beforeMs = processorTimeMs(serve.pid);
    const { requestsPerSecond } = await client.load({ durationMs: PAGES_MS, next });
    rates.push(requestsPerSecond);
    costs.push(((processorTimeMs(serve.pid) - beforeMs) * 1_000_000) / (requestsPerSecond * PAGES_MS));
  }
  report('pages of 50 records', rates, costs);
  await client.close();
}

function report(what: string, rates: readonly number[], costs: readonly number[]): void {
  print(
    `${what} on one core: ${show(median(rates))} a second (${show(Math.min(...rates))} to ${show(Math.max(...rates))}), ` +
      `${show(median(costs))} µs of processor time each`,
  );
}

/** Pins all threads of a process, and those that it starts from now on, to a core. */
function pin(pid: number, core: number): boolean {
  try {
    execFileSync('taskset', ['-acp', String(core), String(pid)], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
