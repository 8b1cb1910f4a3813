import { expect, test, vi } from 'vitest';
import { newEvent } from '../../src/event-store/new-event.ts';
import { countNotSkipped, notSkipped, skippedBy } from '../../src/event-store/skipped-events.ts';

const place = (revision: number) => ({ stream: 'account-7', revision });

/** An operation that skips an event of account 7. */
function skip(revision: number) {
  const data = { position: 9, ...place(revision), reason: 'by hand' };
  const event = newEvent({ type: 'ParkedSkipped', data }, { actor: 'test', command: 'test' }, 0);
  return { ...event, stream: 'operations', revision: 1, position: 10, recordedAtMs: 0 };
}

function counting(skips: readonly number[], parked: readonly number[]) {
  const store = { readStream: vi.fn(async () => skips.map(skip)) };
  const list = vi.fn(async () => parked.map(place));
  const count = (counted: number) => countNotSkipped(store, { counted, most: 3, list });
  return { store, list, count };
}

test('what was skipped is not counted, and nothing is read that changes no count', async () => {
  const none = counting([], [1, 2]);
  expect([await none.count(0), none.store.readStream.mock.calls]).toEqual([0, []]);
  expect([await none.count(2), none.list.mock.calls]).toEqual([2, []]);
  const some = counting([1], [1, 2, 3]);
  expect(await some.count(3)).toBe(2);
  const many = counting([1], [1, 2, 3]);
  expect([await many.count(4), many.store.readStream.mock.calls, many.list.mock.calls]).toEqual([4, [], []]);
});

test('what was skipped is left out of a list, which an empty one needs no look for', async () => {
  const { store } = counting([1], []);
  expect(await notSkipped(store, [])).toEqual([]);
  expect(store.readStream).not.toHaveBeenCalled();
  expect(await notSkipped(store, [place(1), place(2)])).toEqual([place(2)]);
});

test('only the stream of the operations skips', () => {
  expect(skippedBy(skip(1))).toEqual(place(1));
  expect(skippedBy({ ...skip(1), stream: 'operations-of-somebody' })).toBeUndefined();
});
