import { Chance } from '../simulation/core/chance.ts';

/** Values that broke other programs, and those at the limits of this one. */
const NASTY_TEXTS: readonly string[] = [
  ...[
    '',
    ' ',
    '\0',
    '\n',
    '\r\n',
    '\t',
    '\u007f',
    '\ufeff',
    '\ud800',
    '\udfff\ud800',
    '\u202e',
    'é',
    '中',
    '🚚',
  ],
  'null',
  'true',
  '__proto__',
  'constructor',
  'NaN',
  '-0',
  '1e999',
  '0x10',
  '١',
  '../..',
  '%00',
  '%zz',
  "' OR 1=1 --",
  '2026-02-30T00:00:00Z',
  '2026-09-01T24:00:00Z',
  '0000-01-01T00:00:00Z',
  '9999-12-31T23:59:60Z',
  '2026-09-01T00:00:00+99:99',
  '9'.repeat(400),
  '[[[['.repeat(300),
  'x'.repeat(1_000),
  'x'.repeat(1_001),
  'x'.repeat(70_000),
];
const NASTY_VALUES: readonly unknown[] = [
  ...[
    null,
    true,
    0,
    -0,
    -1,
    1.5,
    0.1 + 0.2,
    1e21,
    1e308,
    2 ** 53,
    -(2 ** 53),
    [],
    {},
    [[]],
    { a: { b: {} } },
  ],
  JSON.parse('{"__proto__": {"x": 1}, "toString": 1}'),
  JSON.parse(`${'['.repeat(2_000)}${']'.repeat(2_000)}`),
];

const PLAIN = { configurable: true, enumerable: true, writable: true };

export function nastyText(chance: Chance): string {
  if (chance.is(0.5)) return chance.pick(NASTY_TEXTS);
  const codes = Array.from({ length: chance.int(30) }, () => chance.int(chance.is(0.7) ? 128 : 0x1_0000));
  return String.fromCharCode(...codes);
}

export function nastyValue(chance: Chance): unknown {
  return chance.is(0.5) ? nastyText(chance) : structuredClone(chance.pick(NASTY_VALUES));
}

/** Returns a JSON value like this one with some members changed, removed or added. */
export function changedValue(chance: Chance, value: unknown): unknown {
  const copy = structuredClone(value);
  for (let count = chance.int(4); count > 0; count--) {
    const holders = holdersIn(copy);
    if (holders.length === 0) return nastyValue(chance);
    const holder = chance.pick(holders);
    const name = chance.pick([...Object.keys(holder), 'extra']);
    if (chance.is(0.3)) delete holder[name];
    else Object.defineProperty(holder, name, { value: nastyValue(chance), ...PLAIN }); // also `__proto__`
  }
  return copy;
}

function holdersIn(value: unknown, depth = 0): Record<string, unknown>[] {
  if (typeof value !== 'object' || value === null || depth > 10) return [];
  return [
    value as Record<string, unknown>,
    ...Object.values(value).flatMap((each) => holdersIn(each, depth + 1)),
  ].slice(0, 100);
}

/** Returns the bytes with some changed, removed, doubled or added. */
export function changedBytes(chance: Chance, bytes: Buffer): Buffer {
  let changed = bytes;
  for (let count = chance.int(4); count > 0; count--) {
    const at = chance.int(changed.length + 1);
    const length = chance.int(8);
    const between = chance.pick([
      chance.bytes(chance.int(6)),
      changed.subarray(at, at + length),
      Buffer.alloc(0),
    ]);
    changed = Buffer.concat([changed.subarray(0, at), between, changed.subarray(at + length)]);
  }
  return changed;
}

const CASES = Number(process.env.FUEL_FUZZ_CASES ?? 200);
const SECONDS = Number(process.env.FUEL_FUZZ_SECONDS ?? 0);
const SEED = process.env.FUEL_FUZZ_SEED ?? '1';
/** The first case of `npm run test:fuzz`, which is how a case is repeated. */
const FIRST = Number(process.env.FUEL_FUZZ_CASE ?? 0);
/** The growth that garbage collection may leave. A program that keeps something for each case grows by more. */
const MAX_GROWTH_MB = 40;
const WARM = 20_000;

/**
 * Runs cases, each made from its number and the seed alone: this many, or for as long as `FUEL_FUZZ_SECONDS` says. The
 * error of a case says how to repeat it. `inputs` is the number of lines, events or requests of a case. From 20,000
 * cases on, memory must not grow.
 */
export async function forCases(
  target: string,
  run: (chance: Chance) => Promise<unknown>,
  { inputs = 1 } = {},
): Promise<void> {
  const startMs = performance.now();
  let warmMb: number | undefined;
  let count = 0;
  const goesOn = (): boolean => (SECONDS > 0 ? performance.now() - startMs < SECONDS * 1_000 : count < CASES);
  for (; goesOn(); count++) {
    const number = FIRST + count;
    try {
      await run(new Chance(`${SEED}/${target}/${number}`));
    } catch (error) {
      const repeat = `FUEL_FUZZ_SEED=${SEED} FUEL_FUZZ_CASE=${number} FUEL_FUZZ_CASES=1 npm run test:fuzz -- ${target}`;
      throw new Error(
        `case ${number} of ${target}: ${error instanceof Error ? error.message : error}\n${repeat}`,
        {
          cause: error,
        },
      );
    }
    if (count === WARM) warmMb = heapMb();
  }
  const seconds = (performance.now() - startMs) / 1_000;
  if (SECONDS > 0)
    console.log(`${target}: ${count * inputs} inputs, ${Math.round((count * inputs) / seconds)} a second`);
  if (warmMb === undefined || count < 2 * WARM) return;
  const grownMb = heapMb() - warmMb;
  console.log(
    `${target}: ${warmMb.toFixed(0)} MB of heap after ${WARM} cases, ${grownMb.toFixed(0)} more at the end`,
  );
  if (grownMb > MAX_GROWTH_MB) throw new Error(`${target}: the heap grew by ${grownMb.toFixed(0)} MB`);
}

function heapMb(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed / 1_048_576;
}
