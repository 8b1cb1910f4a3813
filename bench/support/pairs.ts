import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

export const PAIRS = 7;

export interface PairOptions<T> {
  readonly baseline: () => Promise<T>;
  readonly ours: () => Promise<T>;
  /** The number of counted pairs, besides the warm-up pair. */
  readonly pairs?: number;
}

export interface Pairs<T> {
  readonly baseline: readonly T[];
  readonly ours: readonly T[];
}

export interface Target {
  /** The ratio of ours to the baseline. */
  readonly ratio: number;
  readonly is: 'at least' | 'at most';
}

/**
 * Runs baseline and ours in turn, alternating the order from pair to pair, so that a machine that slows down
 * or speeds up affects both alike. A first pair warms up and is not counted. Garbage is collected before each
 * run, so that neither pays for the other's.
 */
export async function runPairs<T>({ baseline, ours, pairs = PAIRS }: PairOptions<T>): Promise<Pairs<T>> {
  const counted = { baseline: [] as T[], ours: [] as T[] };
  for (let pair = 0; pair <= pairs; pair++) {
    const sides = [
      { into: counted.baseline, run: baseline },
      { into: counted.ours, run: ours },
    ];
    if (pair % 2 === 1) sides.reverse();
    for (const { into, run } of sides) {
      collectGarbage();
      const result = await run();
      if (pair > 0) into.push(result);
    }
    process.stderr.write(pair === 0 ? '  warm-up done; pairs:' : ` ${pair}`);
  }
  process.stderr.write('\n');
  return counted;
}

/** Prints both medians and the ratio of the pairs with the floor or limit. Returns true if it was met. */
export function reportRatio(options: {
  readonly what: string;
  readonly unit: string;
  readonly pairs: Pairs<number>;
  readonly target: Target;
}): boolean {
  const { what, unit, pairs, target } = options;
  const ratios = pairs.ours.map((value, index) => value / (pairs.baseline[index] ?? Number.NaN));
  const ratio = median(ratios);
  const met = target.is === 'at least' ? ratio >= target.ratio : ratio <= target.ratio;
  print(
    `${what}: ours ${show(median(pairs.ours))} ${unit}, baseline ${show(median(pairs.baseline))} ${unit}`,
  );
  print(
    `  ratio ${ratio.toFixed(3)} (min ${Math.min(...ratios).toFixed(3)}, max ${Math.max(...ratios).toFixed(3)}, ` +
      `${ratios.length} pairs), ${target.is === 'at least' ? 'floor' : 'limit'} ${target.ratio}: ${verdict(met)}`,
  );
  return met;
}

/** Prints one figure with the value that it must stay below. Returns true if it did. */
export function reportBelow(options: {
  readonly what: string;
  readonly unit: string;
  readonly value: number;
  readonly limit: number;
}): boolean {
  const { what, unit, value, limit } = options;
  const met = value < limit;
  print(`${what}: ${show(value)} ${unit}, limit ${limit} ${unit}: ${verdict(met)}`);
  return met;
}

export function median(values: readonly number[]): number {
  return percentile(values, 50);
}

/** Returns the value that `percent` of the values do not exceed. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const index = Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1);
  return sorted[index] ?? Number.NaN;
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

export function show(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString('en') : value.toPrecision(3);
}

function verdict(met: boolean): string {
  return met ? 'met' : 'MISSED';
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
