import fc from 'fast-check';
import { expect, test } from 'vitest';
import { IdSet } from '../../../src/operator/verify/id-set.ts';

test('has exactly what was added, in whatever order that is added and asked for', () => {
  const ids = fc.array(fc.oneof(fc.integer({ min: 0, max: 40 }), fc.maxSafeNat()), { maxLength: 60 });
  fc.assert(
    fc.property(ids, ids, (added, asked) => {
      const set = new IdSet();
      const known = new Set(added);
      for (const id of added) set.add(id);
      expect([set.size, ...set]).toEqual([known.size, ...[...known].sort((a, b) => a - b)]);
      for (const id of [...asked, ...added, ...[...added].sort((a, b) => a - b), ...asked]) {
        expect([id, set.has(id)]).toEqual([id, known.has(id)]);
      }
    }),
  );
});

test('takes any number of ids', () => {
  const set = new IdSet();
  for (let id = 5_000; id > 0; id -= 2) set.add(id);
  for (let id = 0; id <= 5_001; id++)
    expect([id, set.has(id)]).toEqual([id, id > 0 && id <= 5_000 && id % 2 === 0]);
});
