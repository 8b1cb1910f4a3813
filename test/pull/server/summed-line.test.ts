import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { summedLine } from '../../../src/pull/server/connection-gate.ts';

let lines: [Readonly<Record<string, number>>, string | undefined][];
let summed: ReturnType<typeof summedLine>;

beforeEach(() => {
  vi.useFakeTimers();
  lines = [];
  summed = summedLine((counts, last) => lines.push([counts, last]));
});

afterEach(() => {
  vi.useRealTimers();
});

test('the first is logged at once, what follows within a second in one line, with the count and the last', () => {
  summed.add('a', 'first');
  expect(lines).toEqual([[{ a: 1 }, 'first']]);
  for (let count = 0; count < 50; count++) summed.add('a');
  summed.add('b', 'last');
  vi.advanceTimersByTime(999);
  expect(lines).toHaveLength(1);
  vi.advanceTimersByTime(1);
  expect(lines.slice(1)).toEqual([[{ a: 50, b: 1 }, 'last']]);
});

test('a second after the last line the next is logged at once again', () => {
  summed.add('a');
  vi.advanceTimersByTime(1_000);
  expect(vi.getTimerCount()).toBe(0);
  summed.add('a');
  expect(lines).toHaveLength(2);
});

test('a line that is due at the end is logged then, and only then', () => {
  summed.end();
  expect(lines).toEqual([]);
  summed.add('a');
  summed.add('a');
  summed.end();
  vi.advanceTimersByTime(5_000);
  expect(lines).toEqual([
    [{ a: 1 }, undefined],
    [{ a: 1 }, undefined],
  ]);
});
