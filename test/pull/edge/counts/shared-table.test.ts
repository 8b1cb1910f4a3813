import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SharedTable, tableMemory } from '../../../../src/pull/edge/counts/shared-table.ts';

const MAX_ENTRIES = 1_000;
/** All ids of so small a table are in one bucket. */
const ONE_BUCKET = 4;
const BUCKET_SLOTS = 16;

function table(maxEntries = MAX_ENTRIES): SharedTable {
  return new SharedTable(tableMemory(maxEntries), { isAlive: ({ count }) => count > 0 });
}

test('agrees with a map, whatever is added and taken back, however much it holds', () => {
  const change = fc.record({ id: fc.integer({ min: 0, max: 300 }), by: fc.constantFrom(1, 1, 1, -1) });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 1_500, size: 'max' }), (changes) => {
      const counts = table();
      const model = new Map<number, number>();
      for (const { id, by } of changes) {
        const expected = Math.max(0, (model.get(id) ?? 0) + by);
        model.set(id, expected);
        const count = counts.change(`id ${id}`, (entry) => {
          entry.count = Math.max(0, entry.count + by);
          entry.timeMs = id;
          return entry.count;
        });
        expect(count).toBe(expected);
      }
      for (const [id, count] of model) {
        if (count > 0)
          expect(counts.change(`id ${id}`, (entry) => ({ ...entry }))).toEqual({ count, timeMs: id });
      }
    }),
    { numRuns: 30 },
  );
});

test('an entry that is not alive gives way first, then the one with the earliest time', () => {
  const counts = table(ONE_BUCKET);
  const add = (id: number, by = 1) =>
    counts.change(String(id), (entry) => {
      entry.timeMs = 100 - id;
      entry.count += by;
      return entry.count;
    });
  for (let id = 0; id < BUCKET_SLOTS; id++) add(id);
  add(3, -1);
  expect(add(20)).toBe(1);
  expect([0, 15].map((id) => add(id))).toEqual([2, 2]);
  expect(add(3)).toBe(1); // in the place of 20, whose time is the earliest
  expect([0, 15].map((id) => add(id))).toEqual([3, 3]);
  expect(add(20)).toBe(1);
});

test('a full table has room for its ids in all but a few buckets', () => {
  const counts = table(20_000);
  const add = (id: number) => counts.change(`id ${id}`, (entry) => ++entry.count);
  for (let id = 0; id < 20_000; id++) add(id);
  for (let id = 0; id < 20_000; id++) expect(add(id)).toBe(2);
});

test('a change that throws leaves the table usable', () => {
  const counts = table();
  expect(() =>
    counts.change('a', () => {
      throw new RangeError('no');
    }),
  ).toThrow('no');
  expect(counts.change('a', (entry) => ++entry.count)).toBe(1);
});

test('a lock that nobody releases is an error, not a wait without end', () => {
  const memory = tableMemory(MAX_ENTRIES);
  const counts = new SharedTable(memory, { isAlive: () => true, maxLockMs: 20 });
  Atomics.store(new Int32Array(memory), 0, 1);
  expect(() => counts.change('a', () => undefined)).toThrow('stayed locked');
});
