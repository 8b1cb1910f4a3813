import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../src/base/clock.ts';
import { openEngines } from '../src/engines/engines.ts';
import { buildData } from './support/build-data.ts';
import { type Child, startChild } from './support/child.ts';
import { deliver, rateOf } from './support/deliver.ts';
import { PageClient } from './support/page-client.ts';
import { drawFrom, drawPages, prepareRequests } from './support/page-draws.ts';
import { median, type Pairs, print, reportRatio, runPairs, show } from './support/pairs.ts';
import { processorTimeMs } from './support/process-figures.ts';
import { startReceivers } from './support/receivers.ts';
import { inScratchFolder } from './support/scratch.ts';
import { startServe } from './support/serve.ts';
import { setUpWebhooks } from './support/webhook-sample.ts';

const ROWS = 20_000;
const CONNECTIONS = 16;
const RUN_MS = 2_000;
const DRAWS = 200;
const TRANSACTIONS = Number(process.env.BENCH_DELIVERIES ?? 10_000);
const WEBHOOKS = 10;
const TARGET = { ratio: 0.9, is: 'at least' } as const;

/** Measures pages and deliveries a second while every span goes to a collector, against the same service without one. */
export async function run(): Promise<boolean> {
  return inScratchFolder(async (folder) => {
    const collector = startChild({
      command: process.execPath,
      args: [join(import.meta.dirname, 'support/collector.ts')],
      outputFile: join(folder, 'collector.log'),
    });
    try {
      const { url } = await collector.line((line) => JSON.parse(line) as { readonly url: string });
      const traced = { OTEL_EXPORTER_OTLP_ENDPOINT: url };
      const arePages = await comparePages(join(folder, 'pages'), traced);
      return (await compareDeliveries(folder, traced)) && arePages;
    } finally {
      await collector.stop();
    }
  });
}

type Env = Readonly<Record<string, string>>;

async function comparePages(dataDir: string, traced: Env): Promise<boolean> {
  const customers = await buildData(dataDir, ROWS);
  const [plain, ours] = [
    await startServe({ dataDir, roles: ['api'] }),
    await startServe({ dataDir, roles: ['api'], env: traced }),
  ];
  const clients = [plain, ours].map(({ url }) => new PageClient(url, CONNECTIONS));
  const [plainClient, ownClient] = clients as [PageClient, PageClient];
  try {
    const draws = await prepareRequests(plainClient, drawPages(customers, DRAWS), customers);
    const requests = draws.filter((request) => request !== undefined);
    let seed = 0;
    const load = (client: PageClient, pid: number) => {
      const next = drawFrom(requests, seed++ >> 1);
      return measured(pid, async () => (await client.load({ durationMs: RUN_MS, next })).requestsPerSecond);
    };
    const pairs = await runPairs({
      baseline: () => load(plainClient, plain.pid),
      ours: () => load(ownClient, ours.pid),
    });
    return report('pages', 'requests/s', pairs);
  } finally {
    await Promise.all(clients.map((client) => client.close()));
    await stopAll([plain, ours]);
  }
}

async function compareDeliveries(folder: string, traced: Env): Promise<boolean> {
  const sides = [
    await startPushing(join(folder, 'plain'), {}),
    await startPushing(join(folder, 'traced'), traced),
  ];
  const [plain, ours] = sides as [Pushing, Pushing];
  try {
    const pairs = await runPairs({ pairs: 5, baseline: () => plain.rate(), ours: () => ours.rate() });
    return report('deliveries', 'deliveries/s', pairs);
  } finally {
    for (const side of sides) await side.stop();
  }
}

type Pushing = Awaited<ReturnType<typeof startPushing>>;

async function startPushing(folder: string, traced: Env) {
  mkdirSync(folder);
  const receivers = await startReceivers(folder, WEBHOOKS);
  const dataDir = join(folder, 'data');
  const { config, env, next } = await setUpWebhooks(dataDir, receivers);
  const engines = await openEngines(config, systemClock);
  const serve = await startServe({ dataDir, env: { ...env, ...traced } });
  return {
    rate: () =>
      measured(serve.pid, async () => rateOf(await deliver(engines, receivers, next(TRANSACTIONS)))),
    async stop() {
      await stopAll([serve]);
      await engines.close();
      await receivers.stop();
    },
  };
}

interface Measured {
  readonly perSecond: number;
  /** The processor time of one, in milliseconds, which says more than the rate on a busy machine. */
  readonly processorMs: number;
}

async function measured(pid: number, work: () => Promise<number>): Promise<Measured> {
  const [startedAt, beforeMs] = [performance.now(), processorTimeMs(pid)];
  const perSecond = await work();
  const done = (perSecond * (performance.now() - startedAt)) / 1_000;
  return { perSecond, processorMs: (processorTimeMs(pid) - beforeMs) / done };
}

function report(what: string, unit: string, pairs: Pairs<Measured>): boolean {
  const ofBoth = <T>(pick: (each: Measured) => T) => ({
    ours: pairs.ours.map(pick),
    baseline: pairs.baseline.map(pick),
  });
  const { ours, baseline } = ofBoth(({ processorMs }) => processorMs);
  print(`  processor time of one: ours ${show(median(ours))} ms, baseline ${show(median(baseline))} ms`);
  const rates = ofBoth(({ perSecond }) => perSecond);
  return reportRatio({ what: `traced ${what}`, unit, pairs: rates, target: TARGET });
}

async function stopAll(children: readonly Child[]): Promise<void> {
  for (const child of children) await child.stop();
}
