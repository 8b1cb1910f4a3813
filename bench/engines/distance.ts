import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../src/base/clock.ts';
import { loadConfig, openEngines } from '../../src/engines/engines.ts';
import { storeIdentity } from '../../src/event-store/store-identity.ts';
import type { Engines } from '../../src/service/engines/engines.ts';
import { appendSteadily } from '../support/append-steadily.ts';
import { startDelayingProxy } from '../support/delaying-proxy.ts';
import { startEngineWebhooks } from '../support/engine-webhooks.ts';
import { type EngineEnv, freshId, type Verdict, withEngines } from '../support/engines.ts';
import { freshRecordings, linesOf } from '../support/fresh-lines.ts';
import { importSample } from '../support/import-sample.ts';
import { newestPages } from '../support/newest-pages.ts';
import { PageClient } from '../support/page-client.ts';
import { median, percentile, print, show } from '../support/pairs.ts';
import { projectAll } from '../support/project-all.ts';
import type { Arrival } from '../support/receiver.ts';
import { type Receivers, startReceivers } from '../support/receivers.ts';
import { runFuel } from '../support/run-fuel.ts';
import { startServe } from '../support/serve.ts';
import type { WebhookSetUp, WebhookTransaction } from '../support/webhook-sample.ts';

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3);
const LINES = Number(process.env.BENCH_ROWS ?? 4_000);
const DELIVERIES = Number(process.env.BENCH_DELIVERIES ?? 1_000);
const WEBHOOKS = 10;
const PAGES_MS = 2_000;
const STEADY = { perSecond: 50, count: 150 };
const LOOK_EVERY_MS = 50;
const NONE = 'none';
/** Round trips between the service and its engines, in milliseconds; the first is without the proxy. */
const DISTANCES = [NONE, 0, 2, 10] as const;

type Distance = (typeof DISTANCES)[number];

/** How many times as long each may take at 10 ms as without a distance. */
const MAX_RATIOS = {
  import: 1.5,
  'repeated import': 1.5,
  rebuild: 1.25,
  start: 2.5,
  page: 8,
  latency: 12,
  deliveries: 1.5,
  stop: 3,
  verify: 1.5,
} as const;

type Work = keyof typeof MAX_RATIOS;

type Times = Partial<Record<Work, number>>;

interface Side {
  readonly distance: Distance;
  readonly env: Readonly<Record<string, string>>;
  readonly dataDir: string;
  readonly engines: Engines;
  /** The times in milliseconds, one for each round. */
  readonly times: Times[];
}

/** Measures what the service does at a distance from both engines, against the same without a distance. */
export async function run(): Promise<Verdict> {
  return withEngines(async (env, folder) => {
    const receivers = await startReceivers(folder, WEBHOOKS);
    const stack = new AsyncDisposableStack();
    try {
      const setUp = await startEngineWebhooks(join(folder, 'data'), receivers, env);
      const sides: Side[] = [];
      for (const distance of DISTANCES) sides.push(await sideAt(distance, { folder, setUp, env, stack }));
      print(`  ${LINES.toLocaleString('en')} lines and ${DELIVERIES.toLocaleString('en')} deliveries a run`);
      await inRounds('imports', sides, importTwice);
      await inRounds('services', sides, (side) => serve(side, setUp, receivers));
      await inRounds('reads of the whole log', sides, readAll);
      return report(sides);
    } finally {
      await stack.disposeAsync();
      await receivers.stop();
    }
  });
}

async function sideAt(
  distance: Distance,
  given: {
    readonly folder: string;
    readonly setUp: WebhookSetUp;
    readonly env: EngineEnv;
    readonly stack: AsyncDisposableStack;
  },
): Promise<Side> {
  const dataDir = join(given.folder, `at-${distance}`);
  mkdirSync(dataDir, { mode: 0o700 });
  const urls = distance === NONE ? {} : await proxied(distance, given.env, given.stack);
  const env = { ...given.setUp.env, ...urls, FUEL_DATA_DIR: dataDir };
  const engines = await openEngines(loadConfig({ ...env, FUEL_LOG_LEVEL: 'warn' }, 'command'), systemClock);
  given.stack.defer(() => engines.close());
  return { distance, env, dataDir, engines, times: [] };
}

/** Puts the proxy in front of both engines. Drivers must use the given address, or they would bypass the proxy. */
async function proxied(roundTripMs: number, env: EngineEnv, stack: AsyncDisposableStack) {
  const targets = [env.EVENTSTORE_URL, env.MONGODB_URL].map((url) => Number(/:(\d+)/.exec(url)?.[1]));
  const { ports, stop } = await startDelayingProxy(roundTripMs / 2, targets);
  stack.defer(stop);
  return {
    EVENTSTORE_URL: `esdb://127.0.0.1:${ports[0]}?tls=false`,
    MONGODB_URL: `mongodb://127.0.0.1:${ports[1]}/?directConnection=true`,
  };
}

/**
 * Runs rounds after one to warm up. Each starts with another side, since the log grows and the machine's load changes.
 */
async function inRounds(
  what: string,
  sides: readonly Side[],
  work: (side: Side) => Promise<Times>,
): Promise<void> {
  process.stderr.write(`  ${what}; rounds:`);
  for (let round = 0; round <= ROUNDS; round++) {
    const first = round % sides.length;
    for (const side of [...sides.slice(first), ...sides.slice(0, first)]) {
      const times = await work(side);
      if (round > 0) side.times.push(times);
    }
    process.stderr.write(` ${round}`);
  }
  process.stderr.write('\n');
}

async function importTwice({ engines }: Side): Promise<Times> {
  const store = engines.store();
  const recordings = freshRecordings(LINES, freshId());
  const once = (recorded: number) =>
    importSample({ store, input: linesOf(recordings), lines: LINES, recorded });
  return { import: await timed(() => once(LINES)), 'repeated import': await timed(() => once(0)) };
}

/** Runs a whole `fuel serve` from its start to its end. */
async function serve(
  { dataDir, env, engines }: Side,
  setUp: WebhookSetUp,
  receivers: Receivers,
): Promise<Times> {
  const startedAtMs = performance.now();
  const serve = await startServe({ dataDir, env });
  const start = performance.now() - startedAtMs;
  try {
    const delivered = setUp.next(DELIVERIES);
    const input = linesOf(delivered.map(({ event }) => event));
    await importSample({ store: engines.store(), input, lines: DELIVERIES });
    const atMs = (await arrivalsOf(delivered, receivers)).map((arrival) => arrival.atMs);
    const steady = setUp.next(STEADY.count);
    const appendedAtMs = await appendSteadily(engines.store(), steady, STEADY);
    const arrived = await arrivalsOf(steady, receivers);
    const client = new PageClient(serve.url, 1);
    const { p50Ms: page } = await client.load({ durationMs: PAGES_MS, next: newestPages(setUp.keys) });
    await client.close();
    return {
      start,
      deliveries: percentile(atMs, 99) - percentile(atMs, 0),
      latency: median(arrived.map(({ id, atMs }) => atMs - (appendedAtMs.get(id) ?? Number.NaN))),
      page,
      stop: await timed(() => serve.stop()),
    };
  } finally {
    await serve.stop();
  }
}

/** Returns the first arrival of each, even if some come late: on a busy machine a receiver may miss an attempt. */
async function arrivalsOf(owed: readonly WebhookTransaction[], receivers: Receivers): Promise<Arrival[]> {
  const awaited = new Set(owed.map(({ deliveryId }) => deliveryId));
  const arrivals: Arrival[] = [];
  while (awaited.size > 0) {
    for (const arrival of await receivers.take(1)) if (awaited.delete(arrival.id)) arrivals.push(arrival);
  }
  return arrivals;
}

async function readAll({ dataDir, env, engines }: Side): Promise<Times> {
  const [store, view, coordination] = [engines.store(), engines.view(), engines.coordination()];
  const rebuild = await timed(async () => {
    await view.reset(await storeIdentity(store, systemClock), await store.head());
    await projectAll({ store, view, coordination, lookEveryMs: LOOK_EVERY_MS });
  });
  const { tookMs: verify } = await runFuel(['verify'], { dataDir, stdin: '/dev/null', env });
  return { rebuild, verify };
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAtMs = performance.now();
  await work();
  return performance.now() - startedAtMs;
}

/** Prints the medians, each with its ratio to that without the proxy, round by round. */
function report(sides: readonly Side[]): boolean {
  const timesOf = (side: Side | undefined, work: Work) =>
    side?.times.flatMap((times) => times[work] ?? []) ?? [];
  let isMet = true;
  for (const work of Object.keys(MAX_RATIOS) as Work[]) {
    const none = timesOf(sides[0], work);
    const columns = sides.map((side) => {
      const times = timesOf(side, work);
      const ratio = median(times.map((time, round) => time / (none[round] ?? Number.NaN)));
      if (side.distance === DISTANCES.at(-1)) isMet &&= ratio <= MAX_RATIOS[work];
      const text = `${side.distance} ${show(median(times))}`;
      return side.distance === NONE ? text : `${text} (${ratio.toFixed(2)})`;
    });
    print(`${work}, ms: ${columns.join(', ')}; limit of the last ${MAX_RATIOS[work]}`);
  }
  return isMet;
}
