import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Pool } from 'undici';
import { systemClock } from '../src/base/clock.ts';
import { openEngines } from '../src/engines/engines.ts';
import { deliver, rateOf } from './support/deliver.ts';
import { type Logged, loggedBy } from './support/logged-bytes.ts';
import { print, reportBelow, reportRatio, runPairs } from './support/pairs.ts';
import type { Arrival, KeptRequest } from './support/receiver.ts';
import { type Receivers, startReceivers } from './support/receivers.ts';
import { inScratchFolder } from './support/scratch.ts';
import { startServe } from './support/serve.ts';
import { setUpWebhooks } from './support/webhook-sample.ts';

const TRANSACTIONS = Number(process.env.BENCH_DELIVERIES ?? 10_000);
const WEBHOOKS = 10;
const BARE_IN_FLIGHT = 64;
const PAIRS = 5;
/** The limit for one delivery, half of what nine indexes (one of them random) in pages of 8 KiB took. */
const MAX_LOGGED_BYTES = 10_000;

interface BareDelivery extends KeptRequest {
  readonly id: string;
  readonly receiver: number;
}

/** Measures deliveries a second of a whole `fuel serve`, against a bare loop that sends the same requests. */
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
        baseline: async () => rateOf(await bare.send(requests)),
        ours: async () => rateOf(await deliver(engines, receivers, next(TRANSACTIONS))),
      });
      const target = { ratio: 0.42, is: 'at least' } as const;
      const isFast = reportRatio({ what: 'deliveries', unit: 'deliveries/s', pairs, target });
      const isShort = await reportLogged(dataDir, () => deliver(engines, receivers, next(TRANSACTIONS)));
      return isFast && isShort;
    } finally {
      await bare.close();
      await serve.stop();
      await engines.close();
      await receivers.stop();
    }
  });
}

/** Measures the bytes that one delivery adds to the write-ahead logs of the files that it goes through. */
async function reportLogged(dataDir: string, work: () => Promise<unknown>): Promise<boolean> {
  const ofSubscription = Promise.withResolvers<Logged>();
  const deliveries = await loggedBy(join(dataDir, 'deliveries.db'), async () =>
    ofSubscription.resolve(await loggedBy(join(dataDir, 'subscriptions.db'), work)),
  );
  const subscription = await ofSubscription.promise;
  const each = ({ bytes, pages }: Logged): string =>
    `${Math.round(bytes / TRANSACTIONS)} bytes in ${(pages / TRANSACTIONS).toFixed(2)} pages`;
  print(`  for a delivery: deliveries.db ${each(deliveries)}, subscriptions.db ${each(subscription)}`);
  const value = (deliveries.bytes + subscription.bytes) / TRANSACTIONS;
  return reportBelow({ what: 'written for a delivery', unit: 'bytes', value, limit: MAX_LOGGED_BYTES });
}

function bareDelivery({ id, receiver, request }: Arrival): BareDelivery {
  if (request === undefined) throw new Error('the receivers did not keep the requests');
  return { id, receiver, ...request };
}

function meanBytes(requests: readonly KeptRequest[]): number {
  return Math.round(requests.reduce((sum, { body }) => sum + Buffer.byteLength(body), 0) / requests.length);
}

/** Sends requests and does nothing else: 64 of them are in flight over kept TLS connections. */
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
