import { expect, test } from 'vitest';
import { FuelError } from '../../../src/base/errors.ts';
import type { ViewChange } from '../../../src/pull/record/project-event.ts';
import { applyOrPark } from '../../../src/pull/view/apply-or-park.ts';
import { showing } from '../../support/transactions/records.ts';

const parkedOf = (changes: readonly ViewChange[]) =>
  changes.flatMap((change) =>
    'parkReason' in change ? [{ ...change, reason: change.parkReason, parkedAtMs: 0 }] : [],
  );
const idOf = (change: ViewChange): number => Number(change.stream.slice('transaction-'.length));
const unreadable: ViewChange = {
  ...{ position: 4, stream: 'transaction-4', revision: 0, type: 'Unknown', parkReason: 'unknown type' },
};

/** A view that refuses these transactions; what it was given, and whether the position was to move with it. */
function refusing(...ids: readonly number[]) {
  const calls: (readonly [number[], boolean])[] = [];
  const apply = async (changes: readonly ViewChange[], isWhole: boolean) => {
    calls.push([changes.map(idOf), isWhole]);
    const refused = changes.find((change) => !('parkReason' in change) && ids.includes(idOf(change)));
    if (refused !== undefined) throw new FuelError('ITEM_REFUSED', `refused ${idOf(refused)}`);
    return parkedOf(changes);
  };
  return { calls, apply };
}

const changes = [showing({ id: 1 }), showing({ id: 2 }), showing({ id: 3 }), unreadable];

test('a batch that is taken is applied at once, and the position moves with it', async () => {
  const { apply, calls } = refusing();
  expect(await applyOrPark(changes, apply)).toMatchObject([{ stream: 'transaction-4' }]);
  expect(calls).toEqual([[[1, 2, 3, 4], true]]);
});

test('what is refused is parked once the others are applied; only then does the position move', async () => {
  const { apply, calls } = refusing(2);
  const parked = await applyOrPark(changes, apply);
  expect(parked).toMatchObject([
    { stream: 'transaction-4', reason: 'unknown type' },
    { stream: 'transaction-2', reason: expect.stringContaining('refused 2') },
  ]);
  expect(calls.at(-1)).toEqual([[2], true]);
  expect(calls.slice(1, -1).every(([, isWhole]) => !isWhole)).toBe(true);
  expect(new Set(calls.slice(1).flatMap(([ids]) => ids))).toEqual(new Set([1, 2, 3, 4]));
});

test('an error that is no refusal parks nothing and is passed on', async () => {
  for (const error of [new FuelError('STORE_UNAVAILABLE', 'away'), new TypeError('a fault')]) {
    let calls = 0;
    const apply = (): Promise<never> => {
      calls += 1;
      return Promise.reject(error);
    };
    await expect(applyOrPark(changes, apply)).rejects.toBe(error);
    expect(calls).toBe(1);
  }
});

test('a view that was reset meanwhile is reported, whichever call notices it', async () => {
  expect(await applyOrPark<'reset'>(changes, async () => 'reset')).toBe('reset');
  const { apply } = refusing(2);
  const late = async (some: readonly ViewChange[], isWhole: boolean) => {
    const parked = await apply(some, isWhole);
    return isWhole ? ('reset' as const) : parked;
  };
  expect(await applyOrPark<'reset'>(changes, late)).toBe('reset');
});
