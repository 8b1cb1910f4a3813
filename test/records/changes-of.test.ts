import { expect, test, vi } from 'vitest';
import type { RecordedEvent } from '../../src/event-store/recorded-event.ts';
import { changesIn, changesOf, type ViewChange } from '../../src/records/project-event.ts';
import { openPushStores } from '../support/deliveries/push-stores.ts';
import { cancelled, confirmed, type EventLine, voided } from '../support/transactions/e2e-samples.ts';

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
  const { stream, judge } = await recorded(
    confirmed(1),
    voided(1),
    confirmed(1),
    voided(1),
    confirmed(1, { odometer_reading: 7 }),
  );
  const all = [
    [0, 'show'],
    [1, 'hide'],
    [4, 'it was voided, and that is final: give a new transaction a new id'],
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
    [2, expect.stringContaining('it was recorded before as TransactionConfirmed with other content')],
    [3, 'it belongs to account 7, not 8: name its own account'],
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

test('an event that a command would be refused is parked with that reason, and one that was unchanged is nothing', async () => {
  const { stream, judge } = await recorded(
    confirmed(1),
    confirmed(1, { unknown: 1 }),
    voided(1),
    voided(1),
    cancelled(1),
  );
  expect(outcomes(await judge(stream))).toEqual([
    [0, 'show'],
    [1, expect.stringContaining('with other content')],
    [2, 'hide'],
    [4, 'it was voided already, and that is final'],
  ]);
});

test('a transaction that is voided before it is recorded is never shown', async () => {
  const { stream, judge } = await recorded(voided(1), confirmed(1));
  expect(outcomes(await judge(stream))).toEqual([
    [0, 'hide'],
    [1, 'it was voided, and that is final: give a new transaction a new id'],
  ]);
});

test('a record without its driver replaces the one that names it, once, and not if that is withdrawn', async () => {
  const redacted = confirmed(1, { driver: { id: 77, name: 'REDACTED', mobile_number: null } });
  const shown = await recorded(confirmed(1), redacted, redacted, confirmed(1));
  expect(outcomes(await shown.judge(shown.stream))).toEqual([
    [0, 'show'],
    [1, 'show'],
  ]);
  const withdrawn = await recorded(confirmed(1), voided(1), redacted, voided(1));
  expect(outcomes(await withdrawn.judge(withdrawn.stream))).toEqual([
    [0, 'show'],
    [1, 'hide'],
  ]);
});
