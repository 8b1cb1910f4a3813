import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { print, reportBelow, reportRatio, runPairs } from './support/pairs.ts';
import { peakResidentMb } from './support/process-figures.ts';
import { buildPushedData } from './support/pushed-data.ts';
import { inScratchFolder } from './support/scratch.ts';

const TRANSACTIONS = Number(process.env.BENCH_ROWS ?? 1_000_000);
const PAIRS = 3;
const LIMIT_MB = 400;
const LOOK_EVERY_MS = 50;
const FUEL = join(import.meta.dirname, '../bin/fuel');
const BARE = join(import.meta.dirname, 'support/read-both-sides.ts');

interface Run {
  readonly seconds: number;
  readonly peakMb: number;
}

/** Measures `fuel verify` of view and deliveries, against a bare loop that reads both sides, each in a process. */
export async function run(): Promise<boolean> {
  return inScratchFolder(async (folder) => {
    await buildPushedData(folder, TRANSACTIONS);
    const { baseline, ours } = await runPairs({
      pairs: PAIRS,
      baseline: () => runProcess(process.execPath, [BARE, folder], {}),
      ours: () => runProcess(FUEL, ['verify', '--json'], { FUEL_DATA_DIR: folder }),
    });
    print(`  ${TRANSACTIONS.toLocaleString('en')} transactions with a webhook each`);
    const seconds = (runs: readonly Run[]) => runs.map((each) => each.seconds);
    const inTime = reportRatio({
      what: 'verify',
      unit: 's',
      pairs: { baseline: seconds(baseline), ours: seconds(ours) },
      target: { ratio: 2.5, is: 'at most' },
    });
    const peakMb = ours.reduce((most, each) => Math.max(most, each.peakMb), 0);
    const value = { what: 'verify, peak resident set', unit: 'MB', value: peakMb, limit: LIMIT_MB };
    return reportBelow(value) && inTime;
  });
}

async function runProcess(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<Run> {
  const startedAtMs = performance.now();
  const child = spawn(command, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  let peakMb = 0;
  const watching = setInterval(() => {
    peakMb = Math.max(peakMb, peakResidentMb(child.pid ?? 0) ?? 0);
  }, LOOK_EVERY_MS);
  const [code] = await once(child, 'close');
  clearInterval(watching);
  const seconds = (performance.now() - startedAtMs) / 1000;
  if (code !== 0) throw new Error(`${command} ended with ${code}: ${output}`);
  return { seconds, peakMb };
}
