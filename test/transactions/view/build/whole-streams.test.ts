import { expect, test } from 'vitest';
import {
  ERASED_REVISION,
  type RecordedEvent,
  STREAM_ERASED,
} from '../../../../src/event-store/event-store.ts';
import { projectEvent } from '../../../../src/transactions/project-event.ts';
import { changesOfWholeStreams } from '../../../../src/transactions/view/build/whole-streams.ts';
import { openPushStores } from '../../../support/deliveries/push-stores.ts';
import { confirmed, voided } from '../../../support/transactions/e2e-samples.ts';

test('an event that continues a stream brings the stream with it, what begins or erases one stands alone', async () => {
  const { store, append } = openPushStores();
  await append('transaction-1', confirmed(1), voided(1));
  await append('transaction-2', confirmed(2));
  const [begins, ends] = (await store.readStream('transaction-1')) as [RecordedEvent, RecordedEvent];
  const [other] = (await store.readStream('transaction-2')) as [RecordedEvent];
  const erased = {
    ...other,
    stream: 'transaction-3',
    type: STREAM_ERASED,
    revision: ERASED_REVISION,
    data: null,
  };
  expect(await changesOfWholeStreams(store, [other, erased])).toEqual([other, erased].map(projectEvent));
  expect(await changesOfWholeStreams(store, [ends])).toEqual([begins, ends].map(projectEvent));
});

test('of a stream that was erased since nothing is applied', async () => {
  const { store, append } = openPushStores();
  await append('transaction-1', confirmed(1), voided(1));
  const [, ends] = (await store.readStream('transaction-1')) as [RecordedEvent, RecordedEvent];
  await store.erase('transaction-1');
  expect(await changesOfWholeStreams(store, [ends])).toEqual([]);
});
