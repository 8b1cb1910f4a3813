import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openSqliteDeliveryQueue } from '../../../src/engines/sqlite/queue/queue.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import { copyDeliveries, relocated } from '../../../src/operator/copy/copy-deliveries.ts';
import { deliveryId } from '../../../src/push/message/envelope.ts';
import type { StoredDelivery } from '../../../src/push/queue/delivery.ts';
import { PREFIX } from '../../support/accounts/account-samples.ts';
import { newDelivery } from '../../support/deliveries/deliveries.ts';
import { settle } from '../../support/deliveries/fake-scheduler.ts';
import { countByState } from '../../support/deliveries/listed.ts';
import { failedWith, PushMachine, READY } from '../../support/deliveries/push.ts';
import { record } from '../../support/event-store/store-events.ts';
import {
  copyFrom,
  type EmbeddedEnd,
  logOf,
  newEnd,
  openEnd,
  recordTransactions,
} from '../../support/store-copy/store-copy.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const STREAK = { failedInARow: 3, failingSinceMs: 1_000, lastAnswers: ['503'] };

async function logged(end: EmbeddedEnd, ids: readonly number[]): Promise<void> {
  await end.queue.enqueue(ids.map((id) => newDelivery(id)));
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const idOf = (transactionId: number) => deliveryId(PREFIX, transactionId);

async function withEnds(
  folders: readonly [string, string],
  work: (source: EmbeddedEnd, target: EmbeddedEnd) => Promise<void>,
): Promise<void> {
  const [source, target] = [openEnd(folders[0]), openEnd(folders[1])];
  await work(source, target);
  await Promise.all([source.close(), target.close()]);
}

async function machineIn(folder: string): Promise<PushMachine> {
  const path = join(folder, 'deliveries.db');
  const machine = new PushMachine(folder, (clock) => openSqliteDeliveryQueue({ path, clock }));
  onTestFinished(() => machine.close());
  return machine;
}

test('a webhooks role on the copy receives every event and attempts only what had not ended', async () => {
  const folders = [temporaryFolder(), temporaryFolder()] as const;
  const before = await machineIn(folders[0]);
  before.start();
  await before.account(...READY);
  await before.push(500); // will be purged by the time of the copy
  await before.scheduler.advance(1_000);
  await before.scheduler.jump(100 * DAY_MS);
  expect(await before.queue.purge(before.scheduler.now() - 90 * DAY_MS, 10)).toBe(1);
  await before.push(501); // delivered
  await before.scheduler.advance(1_000);
  before.sender.answer = () => ({ outcome: failedWith(503), afterMs: 5 });
  await before.push(502); // will have failed
  await before.scheduler.advance(200_000);
  await before.push(503); // failed once, due again
  await before.scheduler.advance(100);
  await before.push(504);
  await before.scheduler.advance(100);
  await before.fan(await before.void(504)); // withdrawn
  await before.account({ type: 'IntegrationDisabled', data: { account_id: 7 } });
  await before.push(505); // held
  await before.scheduler.advance(100);
  before.kill();

  await withEnds(folders, async (source, target) => {
    await record(target.store, '$stats', 'every position is another one there');
    expect(await copyFrom(source, target)).toMatchObject({ deliveries: 5, faults: [] });
  });

  const after = await machineIn(folders[1]);
  await after.scheduler.jump(before.scheduler.now() - after.scheduler.now());
  after.start();
  await settle();
  const events = (await logOf(after.store)).filter(({ stream }) => stream.startsWith('transaction-'));
  expect(events).toHaveLength(7);
  await after.fan(...events);
  await after.scheduler.advance(HOUR_MS);
  expect(after.sender.sent).toEqual([]); // without access nothing is attempted
  await after.account({ type: 'IntegrationEnabled', data: { account_id: 7 } });
  await after.scheduler.advance(HOUR_MS);
  expect(after.sender.sent.map(({ id, attempt }) => [id, attempt]).sort()).toEqual(
    [
      [idOf(503), 2],
      [idOf(505), 1],
    ].sort(),
  );
  expect(await countByState(after.queue)).toEqual({
    pending: 0,
    held: 0,
    delivered: 3,
    failed: 1,
    withdrawn: 1,
  });
  const [event] = await after.store.readStream('transaction-503');
  expect((await after.queue.find(idOf(503)))?.position).toBe(event?.position);
});

test('an account event before the copy ends what was owed before it, and nothing that was owed after it', async () => {
  const folders = [temporaryFolder(), temporaryFolder()] as const;
  const before = await machineIn(folders[0]);
  await before.account(...READY);
  before.start();
  before.sender.answer = () => ({ outcome: failedWith(503), afterMs: 5 });
  const event = (type: 'KeySwitchedOff' | 'KeySwitchedOn') =>
    ({ type, data: { account_id: 7, prefix: PREFIX } }) as const;
  await before.account(event('KeySwitchedOff'), event('KeySwitchedOn'));
  await before.push(501);
  await before.scheduler.advance(100);
  before.kill();
  await withEnds(folders, async (source, target) => {
    await record(target.store, '$stats', ...'every position is a larger one there'.split(' '), '', '', '');
    await copyFrom(source, target);
  });
  const after = await machineIn(folders[1]);
  await after.scheduler.jump(before.scheduler.now() - after.scheduler.now());
  after.start();
  await after.scheduler.advance(31_000);
  expect((await after.queue.find(idOf(501)))?.state).toBe('delivered');
});

describe('the position of a delivery in another store', () => {
  const event = (
    type: 'TransactionConfirmed' | 'ExternalTransactionRecorded' | 'TransactionVoided',
    id: number,
  ) => newEvent({ type, data: { transaction_id: id } as never }, { actor: 'test', command: 'test' }, 0);

  test('is that of the event that recorded its transaction, or before everything where it was erased', async () => {
    const { store } = newEnd();
    await record(store, 'account-1', 'first');
    for (const [id, type] of [
      [1, 'TransactionConfirmed'],
      [2, 'ExternalTransactionRecorded'],
      [3, 'TransactionConfirmed'],
    ] as const) {
      await store.append([{ stream: `transaction-${id}`, expected: 'none', events: [event(type, id)] }]);
      await store.append([
        { stream: `transaction-${id}`, expected: 0, events: [event('TransactionVoided', id)] },
      ]);
    }
    await store.erase('transaction-3');
    const deliveries = [1, 2, 3, 4].map((id) => ({ transactionId: id, position: 77 }) as StoredDelivery);
    expect((await relocated(deliveries, store)).map(({ position }) => position)).toEqual([2, 4, 0, 0]);
  });
});

describe('a copied delivery log', () => {
  const copied = async (source: EmbeddedEnd, target: Pick<EmbeddedEnd, 'queue' | 'store'>) => {
    await recordTransactions(target, [1, 2, 3, 4]); // at the positions that the deliveries have
    return copyDeliveries({
      source: source.queue,
      target: target.queue,
      targetStore: target.store,
      onProgress: () => undefined,
    });
  };
  /** Stores nothing, so that whatever differs still does when it is read back. */
  const readOnly = (queue: EmbeddedEnd['queue']): EmbeddedEnd['queue'] => ({
    ...queue,
    store: async () => undefined,
  });

  test('has withdrawals, failure streaks and whatever differed, as in its source', async () => {
    const [source, target] = [newEnd(), newEnd()];
    await logged(source, [1, 2]);
    await logged(target, [1]);
    await target.queue.withdraw([1], 5_000); // differs, and is repaired
    await source.queue.withdraw([9], 5_000);
    await source.queue.store({ streaks: [{ prefix: 'aaaaaaaaaa', ...STREAK }] });
    const report = await copied(source, target);
    expect(report.faults).toEqual([
      expect.stringContaining('withdrawal of transaction 1 is in the target only'),
    ]);
    expect(report.deliveries).toBe(2);
    expect(await target.queue.storedAfter(-1)).toEqual(await source.queue.storedAfter(-1));
    expect(await target.queue.health('aaaaaaaaaa')).toEqual(STREAK);
  });

  test('has no failure streak that its source has not, such as one of a copy that was interrupted', async () => {
    const [source, target] = [newEnd(), newEnd()];
    await target.queue.store({ streaks: [{ prefix: 'aaaaaaaaaa', ...STREAK }] });
    expect((await copied(source, target)).faults).toEqual([]);
    expect(await target.queue.health('aaaaaaaaaa')).toMatchObject({ failedInARow: 0 });
  });

  test('is reported with every delivery, withdrawal and failure streak that differs from its source', async () => {
    const [source, target] = [newEnd(), newEnd()];
    await logged(source, [1, 2, 3]);
    await logged(target, [1, 3, 4]);
    await source.queue.withdraw([3], 5_000);
    await target.queue.withdraw([5], 5_000);
    const ended = { failedInARow: 0, failingSinceMs: null, lastAnswers: [] };
    const streaks = [
      { prefix: 'aaaaaaaaaa', ...STREAK },
      { prefix: 'cccccccccc', ...ended },
    ];
    await source.queue.store({ streaks });
    await target.queue.store({ streaks: [{ prefix: 'bbbbbbbbbb', ...STREAK }] });
    const { deliveries, faults } = await copied(source, {
      ...target,
      queue: readOnly(target.queue),
    });
    expect(deliveries).toBe(1);
    expect(faults.toSorted()).toEqual(
      [
        `delivery ${newDelivery(2).id} is not in the target`,
        `delivery ${newDelivery(3).id} differs`,
        `delivery ${newDelivery(4).id} is in the target only`,
        'the failure streak of key aaaaaaaaaa differs',
        'the failure streak of key bbbbbbbbbb differs',
        'the withdrawal of transaction 3 is not in the target',
        'the withdrawal of transaction 5 is in the target only',
      ].toSorted(),
    );
  });
});
