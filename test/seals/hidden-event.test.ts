import { expect, onTestFinished, test } from 'vitest';
import { recordOperations } from '../../src/event-store/operations.ts';
import { namedLeaves } from '../../src/seals/named-leaves.ts';
import { verifyLog } from '../../src/seals/verify-log.ts';
import { eventStoreDbOnDouble } from '../support/event-store/eventstoredb-under-test.ts';
import { record } from '../support/event-store/store-events.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { key, seal } from '../support/seals/sealing.ts';

/** Makes sealed streams on an engine whose log still shows what a stream does not. */
async function sealedStreams() {
  const store = await eventStoreDbOnDouble();
  onTestFinished(() => store.close());
  await record(store, 'transaction-1', 'a', 'b');
  await record(store, 'transaction-2', 'a');
  await seal(store);
  return store;
}

test('an event of a stream that was cut off or deleted is found, though the log still has it', async () => {
  const store = await sealedStreams();
  expect(await verifyLog({ store, key })).toMatchObject({ fault: undefined });
  await store.rewrite(await store.readStream('transaction-1'));
  const hidden = (place: string) => ({ fault: { kind: 'hidden', place } });
  expect(await verifyLog({ store, key })).toMatchObject(hidden('transaction-1@0'));
  await store.erase('transaction-2');
  expect(await verifyLog({ store, key })).toMatchObject(hidden('transaction-2@0'));
});

test('one that an erasure names is none, and what is hidden behind it is found', async () => {
  const store = await sealedStreams();
  const at = { author: { actor: 'ada', command: 'test' }, clock: new FakeClock() };
  const leavesOf = async (stream: string) => namedLeaves(store, await store.readStream(stream));
  const erased = {
    transaction_id: 2,
    account_id: 7,
    reason: 'asked for',
    leaves: await leavesOf('transaction-2'),
  };
  const redacted = {
    driver_id: 3,
    account_id: 7,
    reason: 'asked for',
    leaves: await leavesOf('transaction-1'),
  };
  await recordOperations(store, [{ type: 'TransactionErased', data: erased }], at);
  await store.erase('transaction-2');
  await recordOperations(store, [{ type: 'DriverRedacted', data: redacted }], at);
  await store.rewrite(await store.readStream('transaction-1'));
  expect(await verifyLog({ store, key })).toMatchObject({ fault: undefined });
  await store.rewrite(await store.readStream('transaction-1'));
  expect(await verifyLog({ store, key })).toMatchObject({ fault: { place: 'transaction-1@2' } });
});
