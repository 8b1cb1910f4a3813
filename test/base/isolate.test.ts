import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FuelError } from '../../src/base/errors.ts';
import { isolateFailures } from '../../src/base/isolate.ts';

/** Work that fails if one of the items is bad, and records what it did. */
function work(bad: ReadonlySet<number>) {
  const done: number[] = [];
  let calls = 0;
  return {
    done,
    calls: () => calls,
    run: async (items: readonly number[]) => {
      calls++;
      const found = items.filter((item) => bad.has(item));
      if (found.length > 0) throw new Error(`refused ${found[0]}`);
      done.push(...items);
    },
  };
}

test('the bad items are returned, each with its own error, and the work is done once for each other, in order', async () => {
  const items = fc.uniqueArray(fc.nat(), { maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(items, fc.array(fc.nat({ max: 39 }), { maxLength: 5 }), async (all, places) => {
      const bad = new Set(places.flatMap((place) => all[place] ?? []));
      const { run, done } = work(bad);
      const failed = await isolateFailures(all, run);
      expect(failed).toEqual(
        all.filter((item) => bad.has(item)).map((item) => ({ item, error: new Error(`refused ${item}`) })),
      );
      expect(done).toEqual(all.filter((item) => !bad.has(item)));
    }),
  );
});

test('one bad item among two hundred takes sixteen calls or so, not two hundred', async () => {
  const all = Array.from({ length: 200 }, (_, index) => index);
  const { run, calls } = work(new Set([77]));
  await isolateFailures(all, run);
  expect(calls()).toBeLessThan(20);
});

test.each(['STORE_UNAVAILABLE', 'STORE_BUSY', 'STORE_CLOSED'] as const)(
  '%s is no fault of any item: it is handed on at once',
  async (code) => {
    let calls = 0;
    const error = new FuelError(code, 'not now');
    const isolating = isolateFailures([1, 2, 3], async () => {
      calls++;
      throw error;
    });
    await expect(isolating).rejects.toBe(error);
    expect(calls).toBe(1);
  },
);

test('for no items nothing is done', async () => {
  const { run, calls } = work(new Set());
  expect(await isolateFailures([], run)).toEqual([]);
  expect(calls()).toBe(0);
});
