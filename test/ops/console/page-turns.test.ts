import { expect, test } from 'vitest';
import { PageTurns } from '../../../src/ops/console/page-turns.ts';
import { until } from '../../support/waiting.ts';

function pages() {
  const turns = new PageTurns();
  const ends: PromiseWithResolvers<void>[] = [];
  const make = () => {
    const end = Promise.withResolvers<void>();
    ends.push(end);
    return end.promise.then(() => 'made');
  };
  return { ends, take: (count: number) => Array.from({ length: count }, () => turns.take(make)) };
}

test('few pages are made at once; when one ends, by a failure too, the next begins', async () => {
  const { ends, take } = pages();
  const [first, second] = take(6);
  await until(async () => ends.length === 4, 1_000);
  ends[0]?.resolve();
  expect(await first).toBe('made');
  expect(ends.length).toBe(4); // its turn ends somewhat later
  await until(async () => ends.length === 5, 2_000);
  ends[1]?.reject(new Error('away'));
  await expect(second).rejects.toThrow('away');
  await until(async () => ends.length === 6, 2_000);
});

test('of very many that ask at once, those who would wait too long get nothing', async () => {
  const { ends, take } = pages();
  const asked = take(105);
  expect(await asked[104]).toBeUndefined();
  expect(await asked[103]).toBeUndefined(); // after the longest wait
  for (const end of ends) end.resolve();
  expect(await asked[0]).toBe('made');
  take(1);
  await until(async () => ends.length === 5, 2_000); // the turns are free again
});
