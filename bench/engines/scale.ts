import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../src/base/clock.ts';
import { openEngines } from '../../src/engines/engines.ts';
import type { Engines } from '../../src/service/engines/engines.ts';
import { startEngineWebhooks } from '../support/engine-webhooks.ts';
import { type EngineEnv, type Verdict, withEngines } from '../support/engines.ts';
import { linesOf } from '../support/fresh-lines.ts';
import { importSample } from '../support/import-sample.ts';
import { listenerPid } from '../support/listener-pid.ts';
import { newestPages } from '../support/newest-pages.ts';
import { PageClient } from '../support/page-client.ts';
import { median, type Pairs, percentile, print, reportRatio, runPairs, show } from '../support/pairs.ts';
import { processorTimeMs } from '../support/process-figures.ts';
import { type Receivers, startReceivers } from '../support/receivers.ts';
import { type RunningServe, startServe } from '../support/serve.ts';
import type { WebhookSetUp } from '../support/webhook-sample.ts';

const TRANSACTIONS = Number(process.env.BENCH_DELIVERIES ?? 5_000);
const WEBHOOKS = 10;
const WARM_UP = 200;
const PAIRS = 3;
const CONNECTIONS = 8;
const PAGES_MS = 4_000;
/** The limit. On one machine everything shares the cores, so more processes must not cost much more. */
const TARGET = { ratio: 0.85, is: 'at least' } as const;

type Role = 'webhooks' | 'api' | 'projector';
type Part = Role | 'EventStoreDB' | 'MongoDB' | 'import';
/** The processor time of each part in µs for one delivery or page. */
type Costs = Partial<Record<Part, number>>;

interface Figures {
  readonly deliveriesPerSecond: number;
  readonly ofDelivery: Costs;
  readonly pagesPerSecond: number;
  readonly ofPage: Costs;
}

/**
 * Compares a dispatcher, an API process and a projector on the engines with two dispatchers, two API processes and a
 * projector. Then estimates by processor time what each would do on its own core with the engines on other machines.
 */
export async function run(): Promise<Verdict> {
  return withEngines(async (env, folder) => {
    const receivers = await startReceivers(folder, WEBHOOKS);
    try {
      const setUp = await startEngineWebhooks(join(folder, 'data'), receivers, env);
      const engines = await openEngines(setUp.config, systemClock);
      const bench = new ScaleBench({ env, folder, receivers, setUp, engines });
      print(`  ${TRANSACTIONS.toLocaleString('en')} transactions and ${PAGES_MS / 1_000} s of pages a run`);
      const pairs = await runPairs({
        pairs: PAIRS,
        baseline: () => bench.measure(1),
        ours: () => bench.measure(2),
      });
      await engines.close();
      showCosts('one of each', pairs.baseline);
      showCosts('two dispatchers, two API processes', pairs.ours);
      const deliveries = of(pairs, ({ deliveriesPerSecond }) => deliveriesPerSecond);
      const pages = of(pairs, ({ pagesPerSecond }) => pagesPerSecond);
      const target = TARGET;
      return [
        reportRatio({ what: 'deliveries by two', unit: 'deliveries/s', pairs: deliveries, target }),
        reportRatio({ what: 'pages of two', unit: 'pages/s', pairs: pages, target }),
      ].every((met) => met);
    } finally {
      await receivers.stop();
    }
  });
}

interface ScaleParts {
  readonly env: EngineEnv;
  readonly folder: string;
  readonly receivers: Receivers;
  readonly setUp: WebhookSetUp;
  readonly engines: Engines;
}

class ScaleBench {
  readonly #parts: ScaleParts;
  readonly #pids: readonly (readonly [Part, number])[];
  #starts = 0;

  constructor(parts: ScaleParts) {
    this.#parts = parts;
    const { EVENTSTORE_URL, MONGODB_URL } = parts.env;
    this.#pids = [...pidOf('EventStoreDB', EVENTSTORE_URL), ...pidOf('MongoDB', MONGODB_URL)];
  }

  /** Measures with this many dispatchers and API processes. */
  async measure(count: number): Promise<Figures> {
    const roles: Role[] = [
      'projector',
      ...Array<Role>(count).fill('webhooks'),
      ...Array<Role>(count).fill('api'),
    ];
    const running: { role: Role; serve: RunningServe }[] = [];
    try {
      for (const role of roles) running.push({ role, serve: await this.#start(role) });
      const pids = [
        ...this.#pids,
        ...running.map(({ role, serve }) => [role, serve.pid] as const),
        ['import', process.pid] as const,
      ];
      await this.#push(WARM_UP); // for processes that were just started
      const sent = await costing(pids, () => this.#push(TRANSACTIONS));
      const apis = running.filter(({ role }) => role === 'api').map(({ serve }) => serve.url);
      const read = await costing(pids, () => this.#pull(apis));
      return {
        deliveriesPerSecond: sent.result,
        ofDelivery: perItem(sent.costsMs, TRANSACTIONS),
        pagesPerSecond: read.result,
        ofPage: perItem(read.costsMs, (read.result * PAGES_MS) / 1_000),
      };
    } finally {
      for (const { serve } of running.toReversed()) await serve.stop();
    }
  }

  /** Starts a process in its own folder, since the certificate and the log are not shared. */
  async #start(role: Role): Promise<RunningServe> {
    const dataDir = join(this.#parts.folder, `${role}-${this.#starts++}`);
    mkdirSync(dataDir, { mode: 0o700 });
    const env = { ...this.#parts.setUp.env, FUEL_DATA_DIR: dataDir };
    return startServe({ dataDir, roles: [role], env });
  }

  /**
   * Imports transactions. Returns how many deliveries a second arrived, up to the 99th of each hundred. With a dozen
   * processes on two cores the receivers sometimes get no processor time for half a second, and the deliveries they
   * miss come later.
   */
  async #push(count: number): Promise<number> {
    const { engines, receivers, setUp } = this.#parts;
    const transactions = setUp.next(count);
    const awaited = new Set(transactions.map(({ deliveryId }) => deliveryId));
    const input = linesOf(transactions.map(({ event }) => event));
    await importSample({ store: engines.store(), input, lines: count });
    const timesMs: number[] = [];
    while (awaited.size > 0) {
      for (const { id, atMs } of await receivers.take(1)) if (awaited.delete(id)) timesMs.push(atMs);
    }
    return (0.99 * count * 1_000) / (percentile(timesMs, 99) - percentile(timesMs, 0));
  }

  /** Returns the pages a second of all API processes together. */
  async #pull(urls: readonly string[]): Promise<number> {
    const draw = newestPages(this.#parts.setUp.keys);
    const loads = urls.map(async (url) => {
      const client = new PageClient(url, CONNECTIONS / urls.length);
      const { requestsPerSecond } = await client.load({ durationMs: PAGES_MS, next: draw });
      await client.close();
      return requestsPerSecond;
    });
    return (await Promise.all(loads)).reduce((sum, rate) => sum + rate, 0);
  }
}

function* pidOf(part: Part, url: string): Generator<readonly [Part, number]> {
  const { hostname, port } = new URL(url.replace(/^[a-z+]+:/, 'http:'));
  const pid = ['127.0.0.1', 'localhost'].includes(hostname) ? listenerPid(Number(port)) : undefined;
  if (pid !== undefined) yield [part, pid];
}

async function costing<T>(pids: readonly (readonly [Part, number])[], work: () => Promise<T>) {
  const before = pids.map(([, pid]) => processorTimeMs(pid));
  const result = await work();
  const costsMs: Costs = {};
  for (const [index, [part, pid]] of pids.entries())
    costsMs[part] = (costsMs[part] ?? 0) + processorTimeMs(pid) - (before[index] ?? 0);
  return { result, costsMs };
}

function perItem(costsMs: Costs, items: number): Costs {
  return Object.fromEntries(Object.entries(costsMs).map(([part, ms]) => [part, (ms * 1_000) / items]));
}

function of(pairs: Pairs<Figures>, figure: (figures: Figures) => number): Pairs<number> {
  return { baseline: pairs.baseline.map(figure), ours: pairs.ours.map(figure) };
}

function showCosts(name: string, runs: readonly Figures[]): void {
  const delivery = medians(runs.map(({ ofDelivery }) => ofDelivery));
  const page = medians(runs.map(({ ofPage }) => ofPage));
  print(`  ${name}: processor time of a delivery: ${costsText(delivery)}`);
  print(`    of a page: ${costsText(page)}`);
  const rate = (us = Number.NaN): string => show(1_000_000 / us);
  print(
    `    on a core of its own, the engines apart: a dispatcher ${rate(delivery.webhooks)} deliveries/s, ` +
      `a projector ${rate(delivery.projector)} events/s, an API process ${rate(page.api)} pages/s`,
  );
}

function medians(costs: readonly Costs[]): Costs {
  const parts = new Set(costs.flatMap((each) => Object.keys(each) as Part[]));
  return Object.fromEntries([...parts].map((part) => [part, median(costs.map((each) => each[part] ?? 0))]));
}

function costsText(costs: Costs): string {
  return Object.entries(costs)
    .map(([part, us]) => `${part} ${show(us)} µs`)
    .join(', ');
}
