import { join } from 'node:path';
import { systemClock } from '../../src/base/clock.ts';
import { openEngines } from '../../src/engines/engines.ts';
import type { Engines } from '../../src/service/engines/engines.ts';
import { deliver, rateOf } from '../support/deliver.ts';
import { startEngineWebhooks } from '../support/engine-webhooks.ts';
import { type Verdict, withEngines } from '../support/engines.ts';
import { print, reportRatio, runPairs } from '../support/pairs.ts';
import { type Receivers, startReceivers } from '../support/receivers.ts';
import { startServe } from '../support/serve.ts';
import { setUpWebhooks, type WebhookSetUp } from '../support/webhook-sample.ts';

const TRANSACTIONS = Number(process.env.BENCH_DELIVERIES ?? 10_000);
const WEBHOOKS = 10;
const PAIRS = 5;

interface Side {
  deliver(): Promise<number>;
  stop(): Promise<void>;
}

/** Measures deliveries a second of a whole `fuel serve` on both engines, against the same on the embedded ones. */
export async function run(): Promise<Verdict> {
  return withEngines(async (env, folder) => {
    const receivers = await startReceivers(folder, WEBHOOKS);
    const sides: Side[] = [];
    try {
      const engines = await startSide(join(folder, 'engines'), receivers, (dataDir) =>
        startEngineWebhooks(dataDir, receivers, env),
      );
      sides.push(engines);
      const embedded = await startSide(join(folder, 'embedded'), receivers, (dataDir) =>
        setUpWebhooks(dataDir, receivers),
      );
      sides.push(embedded);
      print(`  ${TRANSACTIONS.toLocaleString('en')} transactions a run`);
      const pairs = await runPairs({ pairs: PAIRS, baseline: embedded.deliver, ours: engines.deliver });
      const target = { ratio: 0.37, is: 'at least' } as const;
      return reportRatio({ what: 'deliveries on the engines', unit: 'deliveries/s', pairs, target });
    } finally {
      for (const side of sides) await side.stop();
      await receivers.stop();
    }
  });
}

async function startSide(
  dataDir: string,
  receivers: Receivers,
  setUp: (dataDir: string) => Promise<WebhookSetUp>,
): Promise<Side> {
  const { config, env, next } = await setUp(dataDir);
  const engines: Engines = await openEngines(config, systemClock);
  const serve = await startServe({ dataDir, env });
  return {
    deliver: async () => rateOf(await deliver(engines, receivers, next(TRANSACTIONS))),
    async stop() {
      await serve.stop();
      await engines.close();
    },
  };
}
