import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../src/base/clock.ts';
import { openEngines } from '../src/engines/engines.ts';
import { engineUrls } from './support/engine-urls.ts';
import { linesOf } from './support/fresh-lines.ts';
import { importSample } from './support/import-sample.ts';
import { print } from './support/pairs.ts';
import { writeCertificate } from './support/receivers.ts';
import { inScratchFolder } from './support/scratch.ts';
import { startServe } from './support/serve.ts';
import { type SmallReceiver, startSmallReceiver } from './support/small-receivers.ts';
import { setUpWebhooks } from './support/webhook-sample.ts';

const EACH = Number(process.env.BENCH_DELIVERIES ?? 60);
const PROCESSES = Number(process.env.BENCH_PROCESSES ?? 1);
const ONLY = process.env.BENCH_RECEIVER ?? '';
/** `true`: on the servers of `EVENTSTORE_URL` and `MONGODB_URL`, which are empty. */
const ON_ENGINES = process.env.BENCH_ENGINES === 'true';
const GOAL = { used: 0.7, repeated: 0.15 };
const MAX_WAIT_MS = 900_000;

const serial = (workMs: number): SmallReceiver => ({
  name: `one after the other, ${workMs} ms`,
  workers: 1,
  workMs,
  perSecond: 1000 / workMs,
});

const workers = (count: number, workMs: number, more: Partial<SmallReceiver> = {}): SmallReceiver => ({
  name: `${count} at once, ${workMs} ms`,
  workers: count,
  workMs,
  perSecond: (1000 * count) / workMs,
  ...more,
});

const bucket = (askedSeconds: number): SmallReceiver =>
  workers(4, 2, {
    name: `429 above 5 a second, for ${askedSeconds} s`,
    bucket: { size: 5, perSecond: 5, askedSeconds },
    perSecond: 5,
    goal: { used: askedSeconds > 5 ? 0.1 : 0.3 },
  });

const window = (size: number, seconds: number): SmallReceiver =>
  workers(4, 2, {
    name: `429 above ${size} in ${seconds} s`,
    perWindow: { size, windowMs: 1_000 * seconds },
    perSecond: size / seconds,
  });

const pause = { everyMs: 5_000, forMs: 300 };

const RECEIVERS: readonly SmallReceiver[] = [
  ...[20, 50, 100, 200, 350].map(serial),
  workers(2, 100),
  workers(10, 50),
  workers(10, 100),
  workers(50, 20, { goal: { used: 0.5 } }),
  workers(50, 100, { goal: { used: 0.5 } }),
  { ...serial(50), name: 'one after the other, 50 ms, closing', closes: true },
  { name: 'any number, 300 ms', workers: 1_000, workMs: 300 },
  { name: 'any number, 2 ms', workers: 1_000, workMs: 2 },
  { name: 'any number, 150 ms away', workers: 1_000, workMs: 20, wayMs: 75 },
  workers(10, 50, { name: '10 connections at most, 50 ms', workers: 1_000, connections: 10 }),
  workers(10, 50, { name: '10 at once, 50 ms, stopping', pause }),
  workers(10, 50, {
    name: '10 at once, 50 ms, one of 3 hangs',
    hangsEvery: 3,
    perSecond: 300,
    goal: { used: 0, repeated: 0.6 },
  }),
  {
    name: 'handshakes of 50 ms, closing',
    workers: 1,
    workMs: 1,
    handshakeMs: 50,
    closes: true,
    perSecond: 1000 / 51,
  },
  { name: 'handshakes of 50 ms, kept', workers: 1, workMs: 1, handshakeMs: 50 },
  window(10, 1),
  window(30, 30),
  window(60, 60),
  ...[1, 5, 30].map(bucket),
  { name: '503 when 8 wait', workers: 1, workMs: 20, queue: 8, perSecond: 50 },
];

/**
 * Sends a burst to small receivers, all at once, and measures what is lost, what is repeated and how much of them is
 * used.
 */
export async function run(): Promise<boolean> {
  return inScratchFolder(async (folder) => {
    const plans = RECEIVERS.filter(({ name }) => name.includes(ONLY));
    const files = { caFile: join(folder, 'receivers.pem'), keyFile: join(folder, 'receivers.key') };
    await writeCertificate(files.caFile, files.keyFile);
    const receivers = await Promise.all(plans.map((plan) => startSmallReceiver(plan, files)));
    const urls = receivers.map(({ url }) => url);
    const dataDir = join(folder, 'data');
    const { config, env, next } = await setUpWebhooks(
      dataDir,
      { urls, caFile: files.caFile },
      { env: onEngines() },
    );
    const engines = await openEngines(config, systemClock);
    const processes = [];
    for (let number = 0; number < PROCESSES; number++) processes.push(await startServe({ dataDir, env }));
    await sleep(PROCESSES > 1 ? 3_000 : 0); // until the processes know of each other
    try {
      const transactions = next(EACH * plans.length);
      const input = linesOf(transactions.map(({ event }) => event));
      await importSample({ store: engines.store(), input, lines: transactions.length });
      const deadlineMs = performance.now() + MAX_WAIT_MS;
      const count = (): number => receivers.reduce((sum, { taken }) => sum + taken.accepted.size, 0);
      while (count() < transactions.length && performance.now() < deadlineMs) await sleep(500);
      let isWell = true;
      for (const [index, { name, perSecond }] of plans.entries()) {
        const owed = transactions.filter(({ receiver }) => receiver === index);
        const { taken } = receivers[index] ?? {};
        if (taken === undefined) continue;
        const lost = owed.filter(({ deliveryId }) => !taken.accepted.has(deliveryId)).length;
        const repeated = (taken.requests - owed.length) / owed.length;
        const tookMs = taken.lastAtMs - taken.firstAtMs;
        const used = perSecond === undefined ? undefined : owed.length / perSecond / (tookMs / 1000);
        const goal = { ...GOAL, ...plans[index]?.goal };
        const mayLose = plans[index]?.hangsEvery === undefined ? 0 : owed.length / 10;
        isWell &&= lost <= mayLose && repeated <= goal.repeated && (used ?? 1) >= goal.used;
        const share = used === undefined ? '' : `, used ${used.toFixed(2)}`;
        const wideMs = taken.wideAtMs - taken.firstAtMs;
        const wide = wideMs === Infinity ? '' : `, 64 after ${(wideMs / 1000).toFixed(2)} s`;
        print(
          `  ${name.padEnd(36)} ${owed.length}: lost ${lost}, repeated ${(100 * repeated).toFixed(1)} %, ` +
            `${(tookMs / 1000).toFixed(1)} s${share}, at most ${taken.most} at once${wide}`,
        );
      }
      return isWell;
    } finally {
      for (const process of processes) await process.stop();
      await engines.close();
      for (const receiver of receivers) receiver.stop();
    }
  });
}

function onEngines(): Record<string, string> {
  const { EVENTSTORE_URL, MONGODB_URL } = engineUrls;
  if (!ON_ENGINES) return {};
  if (EVENTSTORE_URL === undefined || MONGODB_URL === undefined)
    throw new Error('BENCH_ENGINES needs EVENTSTORE_URL and MONGODB_URL');
  return { EVENTSTORE_URL, MONGODB_URL, MONGODB_DATABASE: `bench_${process.pid}` };
}
