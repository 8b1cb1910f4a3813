import { createWriteStream, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../src/base/clock.ts';
import { loadConfig, openEngines } from '../src/engines/engines.ts';
import type { LoopDelay } from './support/loop-delay.ts';
import { PageClient, type PageRequest } from './support/page-client.ts';
import { print, reportBelow } from './support/pairs.ts';
import { peakResidentMb } from './support/process-figures.ts';
import { type Customer, provision } from './support/provision.ts';
import { runFuel } from './support/run-fuel.ts';
import { ACCOUNTS, END_MS, sampleFile } from './support/sample-events.ts';
import { inScratchFolder } from './support/scratch.ts';
import { type RunningServe, startServe } from './support/serve.ts';

const TRANSACTIONS = Number(process.env.BENCH_ROWS ?? 1_000_000);
const LIMIT_MB = 250;
const DELAY_LIMIT_MS = 20;
const PAUSE_BETWEEN_PAGES_MS = 20;
const PAGES_AFTERWARDS = 500;
const MAX_CATCH_UP_MS = 300_000;
const PRELOAD = join(import.meta.dirname, 'support/loop-delay.ts');

/** Measures an import from standard input while the service runs: the memory of both, and the delay of the loop. */
export async function run(): Promise<boolean> {
  return inScratchFolder(async (folder) => {
    const dataDir = join(folder, 'data');
    // The file is made beforehand, since the generator is not part of the service and would take a core from it.
    const file = join(folder, 'sample.jsonl');
    await pipeline(sampleFile({ lines: TRANSACTIONS }), createWriteStream(file));
    const customers = await provisionEmpty(dataDir);
    const delayFile = join(folder, 'loop-delay.json');
    const env = { NODE_OPTIONS: `--import=${PRELOAD}`, BENCH_LOOP_DELAY_FILE: delayFile };
    const serve = await startServe({ dataDir, env });
    const client = new PageClient(serve.url, 4);
    try {
      await serves(client, customers);
      await readDelay(serve, delayFile); // forgets the delays of the start
      const startedAtMs = performance.now();
      const busy = new AbortController();
      const pulling = pullPages(client, customers, busy.signal);
      const { peakMb } = await runFuel(['transaction', 'import', '-', '--json'], { dataDir, stdin: file });
      await caughtUp(serve, dataDir);
      busy.abort();
      const pulled = await pulling;
      const seconds = Math.round((performance.now() - startedAtMs) / 1000);
      const delay = await readDelay(serve, delayFile);
      print(`  ${TRANSACTIONS.toLocaleString('en')} transactions in ${seconds} s, ${pulled} pages meanwhile`);
      await pullOn(client, customers, PAGES_AFTERWARDS);
      return report(peakMb, peakResidentMb(serve.pid) ?? Number.NaN, delay);
    } finally {
      await client.close();
      await serve.stop();
    }
  });
}

function report(importPeakMb: number, servePeakMb: number, delay: LoopDelay): boolean {
  const memory = { unit: 'MB', limit: LIMIT_MB };
  print(`  longest delay of the main loop: ${delay.maxMs.toFixed(1)} ms`);
  return [
    reportBelow({ what: 'peak resident set of the import', value: importPeakMb, ...memory }),
    reportBelow({ what: 'peak resident set of serve', value: servePeakMb, ...memory }),
    reportBelow({
      what: 'delay of the main loop, p99',
      value: delay.p99Ms,
      unit: 'ms',
      limit: DELAY_LIMIT_MS,
    }),
  ].every((met) => met);
}

async function provisionEmpty(dataDir: string): Promise<Customer[]> {
  mkdirSync(dataDir, { mode: 0o700 });
  const engines = await openEngines(loadConfig({ FUEL_DATA_DIR: dataDir }, 'command'), systemClock);
  const customers = await provision(engines.store(), ACCOUNTS);
  await engines.close();
  return customers;
}

async function caughtUp(serve: RunningServe, dataDir: string): Promise<void> {
  const engines = await openEngines(loadConfig({ FUEL_DATA_DIR: dataDir }, 'command'), systemClock);
  const head = await engines.store().head();
  const deadline = Date.now() + MAX_CATCH_UP_MS;
  while (((await engines.view().checkpoint())?.position ?? 0) < head) {
    if (Date.now() > deadline || serve.process.exitCode !== null)
      throw new Error('the view does not catch up');
    await sleep(100);
  }
  await engines.close();
}

/** Waits until pages are served. They answer 503 until the projector has begun the view. */
async function serves(client: PageClient, customers: readonly Customer[]): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await pullOn(client, customers, 1);
      return;
    } catch (error) {
      if (attempt === 100) throw error;
      await sleep(50);
    }
  }
}

/** Pulls one page after the other at a customer's pace until it is stopped. Resolves with the number of pages. */
async function pullPages(
  client: PageClient,
  customers: readonly Customer[],
  signal: AbortSignal,
): Promise<number> {
  let pulled = 0;
  while (!signal.aborted) {
    await pullOn(client, customers, 10);
    pulled += 10;
  }
  return pulled;
}

/** Follows the cursors of one month after the other, for `pages` pages in all. */
async function pullOn(client: PageClient, customers: readonly Customer[], pages: number): Promise<void> {
  const range = `from=${new Date(END_MS - 31 * 86_400_000).toISOString()}&to=${new Date(END_MS).toISOString()}`;
  let cursor: string | null = null;
  for (let n = 0; n < pages; n++) {
    const key = customers[Math.floor((n * customers.length) / pages)]?.key ?? '';
    const samePull: boolean =
      n > 0 && key === customers[Math.floor(((n - 1) * customers.length) / pages)]?.key;
    const request: PageRequest = {
      path: `/transactions?${range}${samePull && cursor !== null ? `&cursor=${cursor}` : ''}`,
      key,
    };
    cursor = (await client.page(request)).pagination.next_cursor;
    await sleep(PAUSE_BETWEEN_PAGES_MS);
  }
}

async function readDelay(serve: RunningServe, file: string): Promise<LoopDelay> {
  rmSync(file, { force: true });
  serve.process.kill('SIGUSR2');
  for (let attempt = 0; attempt < 100; attempt++) {
    await sleep(50);
    const text = readIfWritten(file);
    if (text !== undefined) return JSON.parse(text) as LoopDelay;
  }
  throw new Error('the service did not tell the delay of its loop');
}

function readIfWritten(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8') || undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
