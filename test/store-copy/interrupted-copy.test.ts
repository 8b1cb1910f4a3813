import { describe, expect, test } from 'vitest';
import type { Coordination } from '../../src/coordination/coordination.ts';
import { FuelError } from '../../src/errors.ts';
import { assertNoUnfinishedCopy } from '../../src/store-copy/unfinished-copy.ts';
import { copyFrom, newEnd, operations, RealisticStore, sample } from '../support/store-copy/store-copy.ts';

describe('a copy that was interrupted', () => {
  test('after it had gone on record is ended by the next run, which only compares', async () => {
    const [source, target] = [await sample(), newEnd()];
    const release: Coordination['release'] = async (lease, holder) => {
      if (lease === 'store copy') throw new FuelError('STORE_UNAVAILABLE', 'MongoDB can not be reached');
      await target.coordination.release(lease, holder);
    };
    const interrupted = { ...target, coordination: { ...target.coordination, release } };
    await expect(copyFrom(source, interrupted)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect(await operations(target)).toHaveLength(2);
    await expect(assertNoUnfinishedCopy(target.coordination)).rejects.toMatchObject({ code: 'REFUSED' });
    expect(await copyFrom(source, target)).toMatchObject({ copiedBefore: true, faults: [] });
    await assertNoUnfinishedCopy(target.coordination);
  });

  test('before that stays unfinished, though a part that was copied before is compared meanwhile', async () => {
    const [source, mongodb, eventStore] = [await sample(), newEnd(), newEnd()];
    await copyFrom(source, { ...mongodb, store: source.store });
    const store = new RealisticStore(eventStore.store);
    store.appendsLeft = 3;
    await expect(copyFrom(source, { ...mongodb, store })).rejects.toThrow('went away');
    expect(await copyFrom(source, { ...mongodb, store: source.store })).toMatchObject({ copiedBefore: true });
    await expect(assertNoUnfinishedCopy(mongodb.coordination)).rejects.toMatchObject({ code: 'REFUSED' });
    store.appendsLeft = Infinity;
    expect(await copyFrom(source, { ...mongodb, store })).toMatchObject({ copiedBefore: false, faults: [] });
    await assertNoUnfinishedCopy(mongodb.coordination);
  });
});
