import { once } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../src/base/clock.ts';
import { openEngines } from '../src/engines/engines.ts';
import { linesOf } from './support/fresh-lines.ts';
import { importSample } from './support/import-sample.ts';
import { print } from './support/pairs.ts';
import { writeCertificate } from './support/receivers.ts';
import { inScratchFolder } from './support/scratch.ts';
import { startServe } from './support/serve.ts';
import { setUpWebhooks } from './support/webhook-sample.ts';

/** They take about two seconds alone. It takes about half a second until a bad neighbour is known. */
const EACH = Number(process.env.BENCH_DELIVERIES ?? 1_000);
const WORK_MS = 20;
const MIN_KEPT = 0.7;
const MAX_WAIT_MS = 60_000;

/** Answers the n-th request of the neighbour, or does not. */
type Neighbour = (response: ServerResponse, n: number) => void;

const NEIGHBOURS: Readonly<Record<string, Neighbour>> = {
  'answers after 490 ms': (response) => void answer(response, 490),
  'hangs every second time': (response, n) => void (n % 2 === 0 && answer(response)),
  'always hangs': () => undefined,
  'cuts every second time': (response, n) => void (n % 2 === 0 ? answer(response) : response.destroy()),
  'answers 503 with Retry-After: 0': (response) => void response.writeHead(503, { 'Retry-After': 0 }).end(),
  'answers 429': (response) => void response.writeHead(429).end(),
  'answers 400 at once': (response) => void response.writeHead(400).end(),
};

/** Sends a burst to two webhooks at one host, and measures what one of them gets alone and beside each kind of the other. */
export async function run(): Promise<boolean> {
  return inScratchFolder(async (folder) => {
    const aloneMs = await victimMs(join(folder, 'alone'));
    print(`  ${EACH} deliveries alone: ${(aloneMs / 1000).toFixed(1)} s`);
    let isWell = true;
    for (const [index, [name, neighbour]] of Object.entries(NEIGHBOURS).entries()) {
      const besideMs = await victimMs(join(folder, `${index}`), neighbour);
      const kept = aloneMs / besideMs;
      isWell &&= kept >= MIN_KEPT;
      print(
        `  beside one that ${name.padEnd(32)} ${(besideMs / 1000).toFixed(1)} s, kept ${kept.toFixed(2)}`,
      );
    }
    return isWell;
  });
}

/** Returns the time from the first request of the victim until it has accepted all that it is owed. */
async function victimMs(folder: string, neighbour?: Neighbour): Promise<number> {
  mkdirSync(folder);
  const host = await startHost(folder, neighbour);
  const dataDir = join(folder, 'data');
  const urls = neighbour === undefined ? [host.victim] : [host.victim, host.neighbour];
  const { config, env, next } = await setUpWebhooks(dataDir, { urls, caFile: host.caFile });
  const engines = await openEngines(config, systemClock);
  const service = await startServe({ dataDir, env });
  try {
    const transactions = next(EACH * urls.length);
    const input = linesOf(transactions.map(({ event }) => event));
    await importSample({ store: engines.store(), input, lines: transactions.length });
    return await host.takenMs(transactions.filter(({ receiver }) => receiver === 0).length);
  } finally {
    await service.stop();
    await engines.close();
    host.stop();
  }
}

/** One TLS listener for both webhooks. */
async function startHost(folder: string, neighbour?: Neighbour) {
  const [caFile, keyFile] = [join(folder, 'receivers.pem'), join(folder, 'receivers.key')];
  await writeCertificate(caFile, keyFile);
  const server = createServer({ cert: readFileSync(caFile), key: readFileSync(keyFile) });
  const accepted = new Set<string>();
  let [firstAtMs, lastAtMs, neighbours] = [Infinity, 0, 0];
  server.on('request', async (request: IncomingMessage, response: ServerResponse) => {
    const body = Buffer.concat(await request.toArray()).toString();
    if (request.url === '/neighbour') {
      neighbour?.(response, neighbours++);
      return;
    }
    firstAtMs = Math.min(firstAtMs, performance.now());
    await answer(response);
    accepted.add(JSON.parse(body).id);
    lastAtMs = performance.now();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    caFile,
    victim: `https://localhost:${port}/victim`,
    neighbour: `https://localhost:${port}/neighbour`,
    /** Resolves once so many are accepted; infinite if they are not in time. */
    async takenMs(count: number): Promise<number> {
      const deadlineMs = performance.now() + MAX_WAIT_MS;
      while (accepted.size < count && performance.now() < deadlineMs) await sleep(20);
      return accepted.size < count ? Infinity : lastAtMs - firstAtMs;
    },
    stop: (): void => void server.close().closeAllConnections(),
  };
}

async function answer(response: ServerResponse, afterMs = WORK_MS): Promise<void> {
  await sleep(afterMs);
  response.writeHead(200).end();
}
