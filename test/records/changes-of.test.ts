import { expect, test, vi } from 'vitest';
import type { RecordedEvent } from '../../src/event-store/recorded-event.ts';
import { changesIn, changesOf, type ViewChange } from '../../src/records/project-event.ts';
import { openPushStores } from '../support/deliveries/push-stores.ts';
import { confirmed, type EventLine, voided } from '../support/transactions/e2e-samples.ts';

/** A store with these events of transaction 1, and what was read from it. */
async function recorded(...events: readonly EventLine[]) {
  const { store, append } = openPushStores();
  for (const event of events) await append('transaction-1', event);
  const stream = await store.readStream('transaction-1');
  return { store, stream, judge: (some: readonly RecordedEvent[]) => changesOf(store, some) };
}

/** Returns the outcome of each: the row that is shown or hidden, or why it is parked. */
const outcomes = (changes: readonly ViewChange[]) =>
  changes.map((each) =>
    'parkReason' in each ? [each.revision, each.parkReason] : [each.change.revision, each.change.kind],
  );

test('an event is judged by those before it in its stream, whichever of them are in the batch', async () => {
  const { stream, judge } = await recorded(confirmed(1), voided(1), confirmed(1), voided(1));
  const all = [
    [0, 'show'],
    [1, 'hide'],
    [2, 'it was voided or cancelled before'],
  ];
  expect(outcomes(await judge(stream))).toEqual(all);
  expect(outcomes(await judge(stream.slice(1)))).toEqual(all.slice(1));
  expect(outcomes(await judge(stream.slice(2)))).toEqual(all.slice(2));
  expect(outcomes(changesIn(stream))).toEqual(all);
});

test('a transaction recorded again with other content, or voided for another account, is parked; the same again is nothing', async () => {
  const otherwise = confirmed(1, { odometer_reading: 7 });
  const { stream, judge } = await recorded(
    confirmed(1),
    confirmed(1),
    otherwise,
    voided(1, { account_id: 8 }),
  );
  expect(outcomes(await judge(stream))).toEqual([
    [0, 'show'],
    [2, 'it was recorded before, with other content'],
    [3, 'it belongs to account 7'],
  ]);
});

test('an event that cannot be read changes nothing of those after it', async () => {
  const { stream, judge } = await recorded(
    confirmed(1),
    confirmed(1, { created_at: 'yesterday' }),
    voided(1),
  );
  expect(outcomes(await judge(stream.slice(2)))).toEqual([[2, 'hide']]);
});

test('an event that its stream has no more is judged by what is left of it', async () => {
  const { store, stream, judge } = await recorded(confirmed(1), voided(1));
  await store.erase('transaction-1');
  expect(outcomes(await judge(stream))).toEqual([
    [0, 'show'],
    [1, 'hide'],
  ]);
});

test('a stream is read only if the batch lacks earlier events of it, and once', async () => {
  const { store, stream, judge } = await recorded(confirmed(1), confirmed(1), voided(1));
  const read = vi.spyOn(store, 'readStreams');
  expect(outcomes(await judge(stream.slice(0, 1)))).toEqual([[0, 'show']]);
  expect(outcomes(await judge([...stream, ...stream.slice(0, 1)]))).toEqual([
    [0, 'show'],
    [2, 'hide'],
    [0, 'show'],
  ]);
  expect(read).not.toHaveBeenCalled();
  for (const part of [stream.slice(1), stream.slice(2), stream.toSpliced(1, 1)])
    expect(outcomes(await judge(part)).at(-1)).toEqual([2, 'hide']);
  expect(read.mock.calls).toEqual(Array.from({ length: 3 }, () => [['transaction-1']]));
});
