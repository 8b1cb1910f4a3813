import { expect, test } from 'vitest';
import { FuelError } from '../../../src/base/errors.ts';
import { applyBatch } from '../../../src/pull/view/projector.ts';
import type { ViewWriter } from '../../../src/pull/view/transactions-view.ts';
import type { ViewChange } from '../../../src/records/project-event.ts';
import { openPushStores } from '../../support/deliveries/push-stores.ts';
import { confirmed } from '../../support/transactions/e2e-samples.ts';

const GENERATION = 1;
const END = 4;

const parkedOf = (changes: readonly ViewChange[]) =>
  changes.flatMap((change) =>
    'parkReason' in change ? [{ ...change, reason: change.parkReason, parkedAtMs: 0 }] : [],
  );
const idOf = (change: ViewChange): number => Number(change.stream.slice('transaction-'.length));

/** Applies four events to a view. The last one can't be shown. */
async function applied(apply: ViewWriter['apply']) {
  const { store, append } = openPushStores();
  for (const id of [1, 2, 3]) await append(`transaction-${id}`, confirmed(id));
  await append('transaction-4', confirmed(5));
  const streams = await store.readStreams([1, 2, 3, 4].map((id) => `transaction-${id}`));
  return applyBatch({ store, view: { apply } }, GENERATION, { events: streams.flat(), checkpoint: END });
}

/** A view that refuses these transactions. It records what it was given, and if the position was to move with it. */
function refusing(...ids: readonly number[]) {
  const calls: (readonly [number[], boolean])[] = [];
  const apply: ViewWriter['apply'] = async (changes, { position }) => {
    calls.push([changes.map(idOf), position === END]);
    const refused = changes.find((change) => !('parkReason' in change) && ids.includes(idOf(change)));
    if (refused !== undefined) throw new FuelError('ITEM_REFUSED', `refused ${idOf(refused)}`);
    return parkedOf(changes);
  };
  return { calls, apply };
}

test('a batch that is taken is applied at once, and the position moves with it', async () => {
  const { apply, calls } = refusing();
  expect(await applied(apply)).toMatchObject([{ stream: 'transaction-4' }]);
  expect(calls).toEqual([[[1, 2, 3, 4], true]]);
});

test('what is refused is parked once the others are applied; only then does the position move', async () => {
  const { apply, calls } = refusing(2);
  const parked = await applied(apply);
  expect(parked).toMatchObject([
    { stream: 'transaction-4', reason: expect.stringContaining('does not belong') },
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
    await expect(applied(apply)).rejects.toBe(error);
    expect(calls).toBe(1);
  }
});

test('a view that was reset meanwhile is reported, whichever call notices it', async () => {
  expect(await applied(async () => 'reset')).toBe('reset');
  const { apply } = refusing(2);
  const late: ViewWriter['apply'] = async (some, to) => {
    const parked = await apply(some, to);
    return to.position === END ? 'reset' : parked;
  };
  expect(await applied(late)).toBe('reset');
});
