import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { type Engines, openEngines } from '../src/app.ts';
import { systemClock } from '../src/clock.ts';
import { importSample } from './support/import-sample.ts';
import { print, reportRatio, runPairs } from './support/pairs.ts';
import type { Arrival, KeptRequest } from './support/receiver.ts';
import { type Receivers, startReceivers } from './support/receivers.ts';
import { inScratchFolder } from './support/scratch.ts';
import { startServe } from './support/serve.ts';
import { setUpWebhooks, type WebhookTransaction } from './support/webhook-sample.ts';

const TRANSACTIONS = Number(process.env.BENCH_DELIVERIES ?? 10_000);
const WEBHOOKS = 10;
const BARE_IN_FLIGHT = 64;
const PAIRS = 5;
const CHUNK_LINES = 200;
const LONGEST_SETTLE_MS = 60_000;

interface BareDelivery extends KeptRequest {
  readonly id: string;
  readonly receiver: number;
}

/** Deliveries a second of a whole `fuel serve`, against a bare loop that sends the same requests to the same receivers. */
export async function run(): Promise<boolean> {
  return inScratchFolder(async (folder) => {
    const receivers = await startReceivers(folder, WEBHOOKS);
    const dataDir = join(folder, 'data');
    const { config, env, next } = await setUpWebhooks(dataDir, receivers);
    const engines = await openEngines(config, systemClock);
    const serve = await startServe({ dataDir, env });
    const bare = new BareSender(receivers);
    try {
      receivers.keepRequests(true);
      const requests = (await deliver(engines, receivers, next(TRANSACTIONS))).map(bareDelivery);
      receivers.keepRequests(false);
      print(`  ${TRANSACTIONS.toLocaleString('en')} transactions a run, ${meanBytes(requests)} bytes each`);
      const pairs = await runPairs({
        pairs: PAIRS,
        baseline: async () => rate(await bare.send(requests)),
        ours: async () => rate(await deliver(engines, receivers, next(TRANSACTIONS))),
      });
      const target = { ratio: 0.15, is: 'at least' } as const;
      return reportRatio({ what: 'deliveries', unit: 'deliveries/s', pairs, target });
    } finally {
      await bare.close();
      await serve.stop();
      await engines.close();
      await receivers.stop();
    }
  });
}

/** Imports transactions beside the running service; resolves when each delivery arrived once and is recorded. */
async function deliver(
  engines: Engines,
  receivers: Receivers,
  transactions: readonly WebhookTransaction[],
): Promise<readonly Arrival[]> {
  const input = chunksOf(transactions);
  await importSample({ store: engines.store(), input, lines: transactions.length });
  const arrivals = await receivers.takeExactly(new Set(transactions.map(({ deliveryId }) => deliveryId)));
  await settled(engines);
  await nothingCameAgain(engines, receivers);
  return arrivals;
}

/** A retry arrives half a minute after the rest: says why the attempt before it did not count. */
async function nothingCameAgain(engines: Engines, receivers: Receivers): Promise<void> {
  const again = await receivers.take(0);
  const [first] = again;
  if (first === undefined) return;
  const attempts = (await engines.queue().find(first.id))?.attempts ?? [];
  const told = attempts.map(({ durationMs, outcome }) =>
    outcome.ok
      ? `delivered in ${durationMs} ms`
      : `${outcome.kind} after ${durationMs} ms: ${outcome.detail}`,
  );
  throw new Error(`${again.length} deliveries came again, one of them after: ${told.join('; ')}`);
}

async function* chunksOf(transactions: readonly WebhookTransaction[]): AsyncGenerator<Buffer> {
  for (let from = 0; from < transactions.length; from += CHUNK_LINES) {
    const lines = transactions
      .slice(from, from + CHUNK_LINES)
      .map(({ event }) => `${JSON.stringify(event)}\n`);
    yield Buffer.from(lines.join(''));
  }
}

/** What is done behind the last arrival must not weigh on the next run. */
async function settled(engines: Engines): Promise<void> {
  const head = await engines.store().head();
  for (const deadline = Date.now() + LONGEST_SETTLE_MS; ; ) {
    const { pending, failed } = await engines.queue().countByState({});
    if (failed > 0) throw new Error(`${failed} deliveries failed`);
    const projectedTo = (await engines.view().checkpoint())?.position ?? 0;
    if (pending === 0 && projectedTo >= head) return;
    if (Date.now() > deadline) throw new Error(`${pending} deliveries are still pending`);
    await sleep(50);
  }
}

/** From the first arrival to the last. */
function rate(arrivals: readonly Arrival[]): number {
  const times = arrivals.map(({ atMs }) => atMs).sort((a, b) => a - b);
  return ((times.length - 1) * 1_000) / ((times.at(-1) ?? 0) - (times[0] ?? 0));
}

function bareDelivery({ id, receiver, request }: Arrival): BareDelivery {
  if (request === undefined) throw new Error('the receivers did not keep the requests');
  return { id, receiver, ...request };
}

function meanBytes(requests: readonly KeptRequest[]): number {
  return Math.round(requests.reduce((sum, { body }) => sum + Buffer.byteLength(body), 0) / requests.length);
}

/** Nothing but requests: 64 of them in flight over kept TLS connections. */
class BareSender {
  readonly #receivers: Receivers;
  readonly #pools: readonly Pool[];

  constructor(receivers: Receivers) {
    this.#receivers = receivers;
    const ca = readFileSync(receivers.caFile, 'utf8');
    this.#pools = receivers.urls.map(
      (url) => new Pool(new URL(url).origin, { connections: BARE_IN_FLIGHT, pipelining: 1, connect: { ca } }),
    );
  }

  async send(requests: readonly BareDelivery[]): Promise<readonly Arrival[]> {
    const queue = requests.values();
    const worker = async (): Promise<void> => {
      for (const request of queue) await this.#post(request);
    };
    await Promise.all(Array.from({ length: BARE_IN_FLIGHT }, worker));
    return this.#receivers.takeExactly(new Set(requests.map(({ id }) => id)));
  }

  async close(): Promise<void> {
    for (const pool of this.#pools) await pool.close();
  }

  #post({ receiver, headers, body }: BareDelivery): Promise<void> {
    return new Promise((resolve, reject) => {
      let status = 0;
      this.#pools[receiver]?.dispatch(
        { path: '/fuel-events', method: 'POST', headers: { ...headers }, body },
        {
          onRequestStart: () => undefined,
          onResponseStart: (_, statusCode) => {
            status = statusCode;
          },
          onResponseData: () => undefined,
          onResponseEnd: () => (status === 200 ? resolve() : reject(new Error(`answered ${status}`))),
          onResponseError: (_, error) => reject(error),
        },
      );
    });
  }
}
