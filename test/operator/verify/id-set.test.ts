import fc from 'fast-check';
import { expect, test } from 'vitest';
import { IdSet } from '../../../src/operator/verify/id-set.ts';

test('has what was added, in whatever order it is added and asked for', () => {
  const ids = fc.array(fc.oneof(fc.integer({ min: 0, max: 40 }), fc.maxSafeNat()), { maxLength: 60 });
  fc.assert(
    fc.property(ids, ids, (added, asked) => {
      const set = new IdSet();
      const known = new Set(added);
      for (const id of added) set.add(id);
      for (const id of [...asked, ...added, ...[...added].sort((a, b) => a - b), ...asked]) {
        expect([id, set.has(id)]).toEqual([id, known.has(id)]);
      }
      expect([...set.values()].sort((a, b) => a - b)).toEqual(added.toSorted((a, b) => a - b));
    }),
  );
});

test('takes any number of ids, and those of another set', () => {
  const [one, other] = [new IdSet(), new IdSet()];
  for (let id = 5_000; id > 0; id -= 2) one.add(id);
  for (let id = 1; id < 5_000; id += 2) other.add(id);
  one.addAll(other.values());
  for (let id = 0; id <= 5_001; id++) expect([id, one.has(id)]).toEqual([id, id > 0 && id <= 5_000]);
});
