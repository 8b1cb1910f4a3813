import { expect, test } from 'vitest';
import { Random } from '../../src/customers/sample/random.ts';
import { type Sample, tableOf, trendsOf } from './trend.ts';

const BOUNDS = { memory: { factor: 1.15, plus: 10 } };

/** An hour, every 5 s: noise of 20 MB, and a leak of so many MB a minute. */
function hour(leak: number): Sample[] {
  const random = new Random(7);
  return Array.from({ length: 720 }, (_, n) => ({
    atMs: n * 5_000,
    values: { memory: 200 + 20 * random.next() + (leak * n * 5) / 60 },
  }));
}

test('noise is no trend', () => {
  expect(trendsOf(hour(0), BOUNDS).map(({ grows }) => grows)).toEqual([false]);
});

test('a leak of a megabyte a minute is one', () => {
  const [trend] = trendsOf(hour(1), BOUNDS);
  expect(trend?.grows).toBe(true);
  expect(tableOf([trend as never])).toMatch(/\| memory \| 2\d\d \| 2\d\d \| grows \|/);
});

test('what was not measured at the end counts as growing', () => {
  const samples = hour(0).map((sample, n) => (n < 360 ? sample : { ...sample, values: {} }));
  expect(trendsOf(samples, BOUNDS).map(({ grows }) => grows)).toEqual([true]);
});

test('what was measured too rarely is refused', () => {
  expect(() => trendsOf(hour(0).slice(0, 11), BOUNDS)).toThrow('11 samples are too few');
});
