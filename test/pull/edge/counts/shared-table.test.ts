import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SharedTable, tableMemory } from '../../../../src/pull/edge/counts/shared-table.ts';

const MAX_ENTRIES = 1_000;

function table(maxEntries = MAX_ENTRIES): SharedTable {
  return new SharedTable(tableMemory(maxEntries), { maxEntries, isAlive: ({ count }) => count > 0 });
}

test('agrees with a map, whatever is added and taken back, however far it grows', () => {
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

test('a full table forgets those that were not seen for longest, and no others', () => {
  const counts = table(64);
  const add = (id: number) => counts.change(String(id), (entry) => ++entry.count);
  for (let id = 0; id < 64; id++) add(id);
  add(0);
  add(64);
  expect(add(0)).toBe(3);
  expect(add(63)).toBe(2);
  expect(add(1)).toBe(1);
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
  const counts = new SharedTable(memory, { maxEntries: MAX_ENTRIES, isAlive: () => true, maxLockMs: 20 });
  Atomics.store(new Int32Array(memory), 0, 1);
  expect(() => counts.change('a', () => undefined)).toThrow('stayed locked');
});
