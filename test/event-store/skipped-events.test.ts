import { expect, test, vi } from 'vitest';
import type { ParkedEvent } from '../../src/event-store/event-store.ts';
import { newEvent } from '../../src/event-store/new-event.ts';
import { groupStatus, notSkipped, skippedBy } from '../../src/event-store/skipped-events.ts';

const place = (revision: number) => ({ stream: 'account-7', revision });

/** An operation that skips an event of account 7. */
function skip(revision: number) {
  const data = { position: 9, ...place(revision), reason: 'by hand' };
  const event = newEvent({ type: 'ParkedSkipped', data }, { actor: 'test', command: 'test' }, 0);
  return { ...event, stream: 'operations', revision: 1, position: 10, recordedAtMs: 0 };
}

test('what was skipped is left out of a list, which an empty one needs no look for', async () => {
  const store = { readStream: vi.fn(async () => [skip(1)]) };
  expect(await notSkipped(store, [])).toEqual([]);
  expect(store.readStream).not.toHaveBeenCalled();
  expect(await notSkipped(store, [place(1), place(2)])).toEqual([place(2)]);
});

test('a group’s parked events are counted without what was skipped or erased, unless there are many', async () => {
  const store = { readStream: vi.fn(async () => [skip(1)]) };
  const status = (parked: number, listed: readonly number[]) => {
    const events = listed.map((revision) => ({ event: { ...skip(1), ...place(revision) } }) as ParkedEvent);
    const list = vi.fn(async () => events);
    return groupStatus(store, { status: async () => ({ position: 5, parked }), parked: list }, 'g');
  };
  expect(await status(3, [1, 2])).toEqual({ position: 5, parked: 1 });
  store.readStream.mockClear();
  expect(await status(0, [])).toEqual({ position: 5, parked: 0 });
  expect(await status(101, [1])).toEqual({ position: 5, parked: 101 });
  expect(store.readStream).not.toHaveBeenCalled();
  const never = { status: async () => undefined, parked: async () => [] };
  expect(await groupStatus(store, never, 'g')).toEqual({ position: 0, parked: 0 });
});

test('only the stream of the operations skips', () => {
  expect(skippedBy(skip(1))).toEqual(place(1));
  expect(skippedBy({ ...skip(1), stream: 'operations-of-somebody' })).toBeUndefined();
});
