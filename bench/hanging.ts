import { join } from 'node:path';
import { systemClock } from '../src/base/clock.ts';
import { openEngines } from '../src/engines/engines.ts';
import type { Engines } from '../src/service/engines/engines.ts';
import { appendSteadily } from './support/append-steadily.ts';
import { percentile, print, reportRatio, show } from './support/pairs.ts';
import { type Receivers, startReceivers } from './support/receivers.ts';
import { inScratchFolder } from './support/scratch.ts';
import { startServiceHere } from './support/service-here.ts';
import { setUpWebhooks, type WebhookSetUp } from './support/webhook-sample.ts';

const WEBHOOKS = 10;
const HANGING = 0;
const PER_SECOND = 200;
const SECONDS = Number(process.env.BENCH_SECONDS ?? 30);
const WARM_UP = 1_000;

/** Puts the same load on ten webhooks, first with all of them answering, then with one that never answers. */
export async function run(): Promise<boolean> {
  return inScratchFolder(async (folder) => {
    const receivers = await startReceivers(folder, WEBHOOKS);
    const setUp = await setUpWebhooks(join(folder, 'data'), receivers);
    const service = await startServiceHere(setUp.config);
    const engines = await openEngines(setUp.config, systemClock);
    const load = (count: number): Promise<number[]> => loadOthers(engines, receivers, setUp.next(count));
    try {
      await load(WARM_UP);
      await receivers.take(0);
      const without = await load(PER_SECOND * SECONDS);
      await receivers.take(0);
      receivers.hang(HANGING);
      const withOne = await load(PER_SECOND * SECONDS);
      const { pending } = await engines.queue().backlog({ nowMs: Date.now(), limit: 1_000_000 });
      print(
        `  ${SECONDS} s each of ${PER_SECOND} events/s; at the end ${pending} deliveries wait for the hanging one`,
      );
      showTimes('all answer', without);
      showTimes('one hangs', withOne);
      return reportRatio({
        what: 'append to arrival at the nine others, p95',
        unit: 'ms',
        pairs: { baseline: [percentile(without, 95)], ours: [percentile(withOne, 95)] },
        target: { ratio: 1.25, is: 'at most' },
      });
    } finally {
      await engines.close();
      await service.stop();
      await receivers.stop();
    }
  });
}

/** Measures from the call of `append` to the request, at all receivers except the one that hangs or will hang. */
async function loadOthers(
  engines: Engines,
  receivers: Receivers,
  transactions: ReturnType<WebhookSetUp['next']>,
): Promise<number[]> {
  const others = new Set(
    transactions.filter(({ receiver }) => receiver !== HANGING).map(({ deliveryId }) => deliveryId),
  );
  const appendedAtMs = await appendSteadily(engines.store(), transactions, { perSecond: PER_SECOND });
  const timesMs = new Map<string, number>();
  while (timesMs.size < others.size) {
    for (const { id, atMs } of await receivers.take(1)) {
      if (!others.has(id)) continue;
      if (timesMs.has(id)) throw new Error(`delivery ${id} came again`);
      timesMs.set(id, atMs - (appendedAtMs.get(id) ?? Number.NaN));
    }
  }
  return [...timesMs.values()];
}

function showTimes(what: string, timesMs: readonly number[]): void {
  const [p50, p95, p99, longest] = [50, 95, 99, 100].map((percent) => show(percentile(timesMs, percent)));
  print(`  ${what}: p50 ${p50} ms, p95 ${p95} ms, p99 ${p99} ms, longest ${longest} ms`);
}
