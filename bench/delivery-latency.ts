import { join } from 'node:path';
import { appendToArrival } from './support/append-to-arrival.ts';
import { percentile, print, reportBelow, show } from './support/pairs.ts';
import { type Receivers, startReceivers } from './support/receivers.ts';
import { inScratchFolder } from './support/scratch.ts';
import { startServe } from './support/serve.ts';
import { startServiceHere } from './support/service-here.ts';
import { setUpWebhooks } from './support/webhook-sample.ts';

const WEBHOOKS = 10;

/** Measures from the call of `append`, in the serving process and in another one, to the request at the receiver. */
export async function run(): Promise<boolean> {
  return inScratchFolder(async (folder) => {
    const receivers = await startReceivers(folder, WEBHOOKS);
    try {
      const here = await appendedHere(join(folder, 'here'), receivers);
      const elsewhere = await appendedElsewhere(join(folder, 'elsewhere'), receivers);
      show3('serving process', here);
      show3('another process', elsewhere);
      const inMs = (what: string, value: number, limit: number): boolean =>
        reportBelow({ what: `append to arrival, ${what}`, value, unit: 'ms', limit });
      return [
        inMs('serving process, p50', percentile(here, 50), 3.5),
        inMs('serving process, p99', percentile(here, 99), 10),
        inMs('another process, p50', percentile(elsewhere, 50), 8),
      ].every((met) => met);
    } finally {
      await receivers.stop();
    }
  });
}

function show3(what: string, timesMs: readonly number[]): void {
  const [p50, p99, longest] = [50, 99, 100].map((percent) => show(percentile(timesMs, percent)));
  print(`  ${what}: p50 ${p50} ms, p99 ${p99} ms, longest ${longest} ms, ${timesMs.length} events`);
}

async function appendedHere(dataDir: string, receivers: Receivers): Promise<number[]> {
  const setUp = await setUpWebhooks(dataDir, receivers);
  const service = await startServiceHere(setUp.config);
  try {
    return await appendToArrival(setUp, receivers);
  } finally {
    await service.stop();
  }
}

async function appendedElsewhere(dataDir: string, receivers: Receivers): Promise<number[]> {
  const setUp = await setUpWebhooks(dataDir, receivers);
  const serve = await startServe({ dataDir, env: setUp.env });
  try {
    return await appendToArrival(setUp, receivers);
  } finally {
    await serve.stop();
  }
}
