import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { PageTurns } from '../../../src/operator/console/page-turns.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function pages() {
  const turns = new PageTurns();
  const ends: PromiseWithResolvers<void>[] = [];
  const make = () => {
    const end = Promise.withResolvers<void>();
    ends.push(end);
    return end.promise.then(() => 'made');
  };
  return {
    ends,
    take: (count: number) => Array.from({ length: count }, () => turns.take(make)),
    /** How many pages were begun, after some time. */
    async begunAfter(ms: number) {
      await vi.advanceTimersByTimeAsync(ms);
      return ends.length;
    },
  };
}

test('few pages are made at once; somewhat after one has ended, by a failure too, the next begins', async () => {
  const { ends, take, begunAfter } = pages();
  const [first, second] = take(6);
  expect(await begunAfter(0)).toBe(4);
  ends[0]?.resolve();
  expect(await first).toBe('made');
  expect(await begunAfter(199)).toBe(4);
  expect(await begunAfter(1)).toBe(5);
  ends[1]?.reject(new Error('away'));
  await expect(second).rejects.toThrow('away');
  expect(await begunAfter(200)).toBe(6);
  take(1);
  expect(await begunAfter(1_000)).toBe(6); // four are being made
});

test('those who would wait too long get nothing, and take no turn later', async () => {
  const { ends, take, begunAfter } = pages();
  const asked = take(105);
  expect(await begunAfter(3_999)).toBe(4);
  const later = take(1);
  await begunAfter(1);
  expect(await Promise.all(asked.slice(4))).toEqual(Array(101).fill(undefined));
  for (const end of ends) end.resolve();
  expect(await asked[0]).toBe('made');
  expect(await begunAfter(200)).toBe(5);
  ends[4]?.resolve();
  expect(await later[0]).toBe('made');
});

test('once nobody waits, all turns are free, and no timer is left', async () => {
  const { ends, take, begunAfter } = pages();
  take(5);
  await begunAfter(0);
  ends[0]?.resolve();
  expect(await begunAfter(200)).toBe(5);
  for (const end of ends) end.resolve();
  await begunAfter(200);
  expect(vi.getTimerCount()).toBe(0);
  take(5);
  expect(await begunAfter(0)).toBe(9);
});
