/** The measurements at one moment, by name. */
export interface Sample {
  readonly atMs: number;
  readonly values: Readonly<Record<string, number>>;
}

/** How much larger a measure may be at the end than at the beginning. */
export interface Bound {
  readonly factor: number;
  /** An additional amount in its unit, since a small value may double. */
  readonly plus: number;
}

interface Trend {
  readonly name: string;
  readonly first: number;
  readonly last: number;
  readonly grows: boolean;
}

const PARTS = 6;

/** Compares the medians of the first and the last sixth of a run. */
export function trendsOf(samples: readonly Sample[], bounds: Readonly<Record<string, Bound>>): Trend[] {
  const count = Math.floor(samples.length / PARTS);
  if (count < 2) throw new Error(`${samples.length} samples are too few for a trend`);
  return Object.entries(bounds).map(([name, { factor, plus }]) => {
    const [first, last] = [samples.slice(0, count), samples.slice(-count)].map((part) =>
      quantile(
        part.flatMap(({ values }) => values[name] ?? []),
        0.5,
      ),
    ) as [number, number];
    return { name, first, last, grows: !(last <= factor * first + plus) }; // true if nothing was measured
  });
}

/** Returns a quantile; NaN if there are no values. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN;
}

export function tableOf(trends: readonly Trend[]): string {
  const rows = trends.map(
    ({ name, first, last, grows }) =>
      `| ${name} | ${rounded(first)} | ${rounded(last)} |${grows ? ' grows |' : ' |'}`,
  );
  return ['| | first sixth | last sixth | |', '|---|---|---|---|', ...rows].join('\n');
}

function rounded(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: value < 10 ? 1 : 0 });
}
