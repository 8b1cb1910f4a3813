import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { BASE_PATH } from '../src/pull/app.ts';
import { type RunningAttack, startAttack } from '../test/support/hostile/attack.ts';
import type { Attack } from '../test/support/hostile/attacker.ts';
import { customersLines } from '../test/support/hostile/customers.ts';
import { goodCustomer, type Served } from '../test/support/hostile/good-customer.ts';
import { openSockets } from '../test/support/hostile/open-sockets.ts';
import { Operator, openForUse } from '../test/support/service/operator.ts';
import { until } from '../test/support/waiting.ts';
import { withMongodb, withPostgres } from './support/engines.ts';
import { compareWorstReceivers } from './support/hostile-receivers.ts';
import { percentile, print, reportBelow, reportRatio, show } from './support/pairs.ts';
import { residentMb } from './support/process-figures.ts';
import { inScratchFolder } from './support/scratch.ts';
import { startServe } from './support/serve.ts';

const PATH = `${BASE_PATH}/transactions?from=2026-09-01T00:00:00Z&to=2026-09-30T00:00:00Z`;
const GOOD = 7;
const FIRST_BAD = 100;
const BAD = 100;
const PAGES = 200;
const MAX_UNREAD_MS = 45_000;

interface Hostile {
  readonly port: number;
  readonly pid: number;
  readonly url: string;
  readonly good: string;
  readonly bad: readonly string[];
}

/** Measures what hostile customers and receivers cost the good ones: their figures alone and beside the hostile ones. */
export async function run(): Promise<boolean> {
  const met = [
    await withService({}, BAD, async (service) => [
      await besideUnread(service), // first, since it counts the connections of the process
      await besideSilence(service),
      await besideGuesses(service),
    ]),
    await onServer('PostgreSQL', withPostgres),
    await onServer('MongoDB', withMongodb),
    await inScratchFolder(compareWorstReceivers),
  ];
  return met.flat().every((each) => each !== false);
}

/** Starts `fuel serve` with a good customer and this number of others, all of whom have a full page. */
async function withService<T>(
  env: Readonly<Record<string, string>>,
  keys: number,
  work: (service: Hostile) => Promise<T>,
): Promise<T> {
  return inScratchFolder(async (folder) => {
    const dataDir = join(folder, 'data');
    mkdirSync(dataDir, { mode: 0o700 });
    const { url, pid, stop } = await startServe({ dataDir, env });
    try {
      const operator = new Operator({ ...env, FUEL_DATA_DIR: dataDir });
      const accounts = Array.from({ length: keys }, (_, index) => FIRST_BAD + index);
      const { key: good } = await operator.provision(GOOD, openForUse(GOOD));
      const bad: string[] = [];
      for (const id of accounts)
        bad.push((await operator.provision(id, openForUse(id), { rateLimit: keys === 1 ? 60 : 1_000 })).key);
      await operator.import(customersLines([GOOD, ...accounts]), { wait: true });
      const { origin, port } = new URL(url);
      return await work({ port: Number(port), pid, url: origin + PATH, good, bad });
    } finally {
      await stop();
    }
  });
}

/** Asks for pages before, during and after an attack, and reports the median during it beside the others. */
async function compare(what: string, { url, good }: Hostile, attack: Attack, isUp: Up, keepAlive = true) {
  const customer = goodCustomer(url, good, { keepAlive });
  await customer.askOften(PAGES);
  const before = await customer.askOften(PAGES);
  const running = startAttack(attack);
  await until(async () => isUp(await running.suffered()));
  const beside = await customer.askOften(PAGES);
  await running.stop();
  const after = await customer.askOften(PAGES);
  customer.close();
  for (const [when, served] of Object.entries({ before, beside, after }))
    print(`  ${when}: ${figures(served)}`);
  const p50 = (served: readonly Served[]): number =>
    percentile(
      served.map(({ tookMs }) => tookMs),
      50,
    );
  const pairs = { ours: [p50(beside)], baseline: [Math.max(p50(before), p50(after))] };
  const isQuick = reportRatio({ what, unit: 'ms a page', pairs, target: { ratio: 2, is: 'at most' } });
  return isQuick && beside.every(({ status }) => status === 200);
}

type Up = (suffered: Awaited<ReturnType<RunningAttack['suffered']>>) => boolean;

function figures(served: readonly Served[]): string {
  const times = served.map(({ tookMs }) => tookMs);
  const [p50, p99, most] = [50, 99, 100].map((percent) => show(percentile(times, percent)));
  const others = served.filter(({ status }) => status !== 200).length;
  return `${served.length} pages, p50 ${p50} ms, p99 ${p99} ms, longest ${most} ms; ${others} without a page`;
}

const besideSilence = (service: Hostile): Promise<boolean> => {
  const addresses = Array.from({ length: 32 }, (_, number) => `127.0.${number + 1}.1`);
  const attack = { kind: 'silent', port: service.port, addresses, each: 64 } as const;
  return compare('32 × 64 silent connections', service, attack, ({ opened }) => opened >= 2_048, false);
};

const besideGuesses = (service: Hostile): Promise<boolean> => {
  const attack = { kind: 'guess', port: service.port, path: PATH, connections: 60 } as const;
  return compare('guessed keys in 60 handshakes', service, attack, ({ answers }) => '401' in answers);
};

async function onServer(
  name: string,
  withServer: (
    work: (env: Readonly<Record<string, string>>) => Promise<boolean>,
  ) => Promise<boolean | 'not run'>,
): Promise<boolean | 'not run'> {
  return withServer((env) =>
    withService(env, 1, (service) => {
      const { port, bad } = service;
      const flood = { kind: 'flood', port, keys: bad, path: PATH } as const;
      const attack = { ...flood, connections: 30, requests: 150 };
      return compare(`a burst of 4,500, ${name}`, service, attack, ({ answers }) => '429' in answers);
    }),
  );
}

/** Measures the memory while a hundred connections leave 60 pages each unread, after many that were read. */
async function besideUnread({ port, pid, bad }: Hostile): Promise<boolean> {
  const idle = openSockets(pid);
  const usual = startAttack({ kind: 'flood', port, keys: bad, path: PATH, connections: 100, requests: 30 });
  await until(async () => ((await usual.suffered()).answers['200'] ?? 0) >= 3_000);
  await usual.stop();
  await until(() => openSockets(pid) <= idle);
  const memoryMb = (): number => residentMb(pid) ?? Number.NaN;
  const beforeMb = memoryMb();
  const attack = { kind: 'unread', port, path: PATH, requests: 60, connections: 50 } as const;
  const attacks = [
    startAttack({ ...attack, keys: bad.slice(0, 50), bytesPerSecond: 0 }),
    startAttack({ ...attack, keys: bad.slice(50), bytesPerSecond: 1 }),
  ];
  await until(() => openSockets(pid) > idle + 90);
  const startedAtMs = performance.now();
  let mostMb = 0;
  await until(async () => {
    mostMb = Math.max(mostMb, memoryMb());
    return openSockets(pid) <= idle || performance.now() - startedAtMs > MAX_UNREAD_MS;
  });
  const seconds = Math.round((performance.now() - startedAtMs) / 1_000);
  print(
    `  ${100 - openSockets(pid) + idle} of 100 connections that do not read were closed within ${seconds} s`,
  );
  for (const each of attacks) await each.stop();
  const value = mostMb - beforeMb;
  return reportBelow({ what: '100 connections that do not read', unit: 'MB more', value, limit: 100 });
}
