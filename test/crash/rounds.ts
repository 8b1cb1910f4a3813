import { mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Engines } from './engines.ts';
import { crashSeconds, crashSeed } from './environment.ts';
import { crashRun, type Run, type RunOptions } from './run.ts';
import type { Kill } from './stage.ts';

/** How long one run works on one store at most before it is judged. */
const ROUND_SECONDS = 90;
/** The time for the start, the remaining deliveries, the judgement and the stop of one run, on a busy machine. */
const AROUND_SECONDS = 500;
/** The distance between the seeds of two rounds, since each round uses some that follow its own. */
const SEED_STEP = 100_000;

interface RoundsOptions extends Pick<RunOptions, 'members' | 'points' | 'next'> {
  /** Starts separate engines for each round. */
  readonly start: () => Promise<Engines>;
  /** The time of all rounds; by default `FUEL_CRASH_SECONDS`. */
  readonly seconds?: number;
}

/** Returns how long `crashRounds` may take at most. */
export function roundsTimeoutMs(): number {
  const seconds = crashSeconds();
  return 1_000 * (seconds + AROUND_SECONDS * Math.ceil(seconds / ROUND_SECONDS));
}

/**
 * Runs for `FUEL_CRASH_SECONDS`, in rounds that each begin with an empty store, and prints what was killed and the
 * results. Fails at the first round that has a fault, and names the seed that repeats it.
 */
export async function crashRounds(options: RoundsOptions): Promise<void> {
  const kills: Kill[] = [];
  let seed = crashSeed();
  for (let left = options.seconds ?? crashSeconds(); left > 0; left -= ROUND_SECONDS, seed += SEED_STEP) {
    const seconds = Math.min(left, ROUND_SECONDS);
    kills.push(...(await round(options, { seed, seconds })).kills);
  }
  console.log(`${kills.length} kills:\n${killsByPoint(kills)}`);
}

async function round(
  { start, ...options }: RoundsOptions,
  { seed, seconds }: Pick<RunOptions, 'seed' | 'seconds'>,
): Promise<Run> {
  const engines = await start();
  const again = `FUEL_CRASH_SEED=${seed} FUEL_CRASH_SECONDS=${seconds}`;
  console.log(`crash run on ${engines.name}: ${again}`);
  try {
    const run = await crashRun({ engines, ...options, seed, seconds });
    const { faults, kills, readyMs, transactions, deliveries, redelivered } = run;
    console.log(
      `seed ${seed}: ${kills.length} kills, ${transactions} transactions, ${deliveries} deliveries, ` +
        `${redelivered} deliveries redelivered, ${faults.length} faults, ready ${readyMs} ms after the last kill`,
    );
    if (faults.length > 0) {
      const file = keep(`${engines.name}-${seed}`, [...faults, ...kills.map((kill) => JSON.stringify(kill))]);
      expect(faults, `${again}; all of it is in ${file}`).toEqual([]);
    }
    return run;
  } catch (error) {
    throw new Error(`crash run on ${engines.name} failed: ${again}\n${(error as Error).message}`, {
      cause: error,
    });
  } finally {
    await engines.remove();
  }
}

/** Returns a line for each point with what was killed there, and how often. */
function killsByPoint(kills: readonly Kill[]): string {
  const counts = new Map<string, number>();
  for (const { what, how } of kills) {
    const name = `${what}, ${how.replace(/:\d+$/, '')}`;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([name, count]) => `  ${count} ${name}`)
    .join('\n');
}

function keep(name: string, lines: readonly string[]): string {
  const folder = join(tmpdir(), 'fuel-crash');
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${name.replaceAll(' ', '-')}.log`);
  writeFileSync(file, lines.join('\n'));
  return file;
}
