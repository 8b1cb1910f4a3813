import { describe, expect, test } from 'vitest';
import type { DeliveryLogCopy, StoredDelivery } from '../../src/deliveries/queue/log-copy.ts';
import { type RecordedEvent, Unreadable } from '../../src/event-store/event-store.ts';
import { newEvent } from '../../src/event-store/new-event.ts';
import { appendCopies } from '../../src/store-copy/append-copies.ts';
import { toCopied } from '../../src/store-copy/copied-event.ts';
import { copyDeliveries, relocateDeliveries } from '../../src/store-copy/copy-deliveries.ts';
import { parkedByGroup } from '../../src/store-copy/parked-by-group.ts';
import { relocated } from '../../src/store-copy/relocate.ts';
import { newDelivery } from '../support/deliveries/deliveries.ts';
import { openForTest } from '../support/event-store/embedded-subscriptions.ts';
import { named, record } from '../support/event-store/store-events.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { copyFrom, type EmbeddedEnd, logOf, newEnd, sample } from '../support/store-copy/store-copy.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const RUN = { failedInARow: 3, failingSinceMs: 1_000, lastAnswers: ['503'] };

async function logged(end: EmbeddedEnd, ids: readonly number[]): Promise<void> {
  await end.queue.enqueue(ids.map((id) => newDelivery(id)));
}

async function idsOf(log: DeliveryLogCopy): Promise<StoredDelivery[]> {
  const found: StoredDelivery[] = [];
  for await (const batch of log.deliveries()) found.push(...batch);
  return found;
}

describe('copies of events', () => {
  test('are refused where their places are taken, each with how it stands there, the first ten named', async () => {
    const [source, target] = [newEnd(), newEnd()];
    for (let id = 1; id <= 12; id++) {
      await record(source.store, `transaction-${id}`, 'ours');
      if (id > 1) await record(target.store, `transaction-${id}`, 'theirs');
    }
    await target.store.erase('transaction-1');
    const events = await logOf(source.store);
    await expect(appendCopies(events, target.store)).rejects.toMatchObject({
      code: 'REFUSED',
      message: expect.stringMatching(
        /^the target took 12 events otherwise: transaction-1@0, whose stream is erased/,
      ),
    });
    const { message } = (await appendCopies(events, target.store).catch((error) => error)) as Error;
    expect(message).toContain('transaction-2@0, whose stream ends at 0 there');
    expect(message.split('; ')).toHaveLength(10);
    const late = events.slice(0, 1).map((event) => ({ ...event, stream: 'transaction-99', revision: 1 }));
    await expect(appendCopies(late, target.store)).rejects.toThrow('whose stream does not exist there');
  });

  test('say where the last of them stands, whichever was recorded last', async () => {
    const [source, target] = [newEnd(), newEnd()];
    await record(source.store, 'transaction-1', 'a', 'b');
    await record(source.store, 'account-1', 'c');
    const events = await logOf(source.store);
    expect(await appendCopies(events, target.store)).toBe(3);
    expect(await appendCopies(events.slice(0, 1), target.store)).toBe(1); // it stands there already
    expect(await appendCopies([], target.store)).toBe(0);
  });

  test('keep a time that can be read, and get that of their store where it can not', () => {
    const event = (metadata: unknown) =>
      ({ stream: 'account-1', revision: 0, data: {}, metadata, recordedAtMs: 1_000 }) as RecordedEvent;
    const kept = { at: '2026-09-03T10:00:00+02:00', note: 'x' };
    expect(toCopied(event(kept)).metadata).toEqual(kept);
    const at = '1970-01-01T00:00:01.000Z';
    expect(toCopied(event({ at: '2026-02-30T00:00:00Z', note: 'x' })).metadata).toEqual({ at, note: 'x' });
    for (const metadata of [{}, null, 'text', { at: 5 }]) {
      expect(toCopied(event(metadata)).metadata).toMatchObject({ at });
    }
  });

  test('are not made of what is not JSON, in its data or metadata', () => {
    const event = { stream: 'account-1', revision: 3, data: {}, metadata: {}, recordedAtMs: 0 };
    for (const part of ['data', 'metadata']) {
      const broken = { ...event, [part]: new Unreadable(`${part} is not JSON`) } as unknown as RecordedEvent;
      expect(() => toCopied(broken)).toThrow(
        expect.objectContaining({
          code: 'REFUSED',
          message: `account-1@3 can't be copied: ${part} is not JSON`,
        }),
      );
    }
  });
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

  test('is stored where it is another one, and counted', async () => {
    const end = newEnd();
    await logged(end, [1, 2, 3]);
    const stored: number[] = [];
    const log: DeliveryLogCopy = {
      ...end.deliveries,
      deliveries: () => end.deliveries.deliveries(),
      store: async (deliveries) => {
        stored.push(...deliveries.map(({ transactionId }) => transactionId));
        await end.deliveries.store(deliveries);
      },
    };
    const moved = await relocateDeliveries(log, async (deliveries) =>
      deliveries.map((delivery) => ({
        ...delivery,
        position: delivery.transactionId === 2 ? 50 : delivery.position,
      })),
    );
    expect([moved, stored]).toEqual([1, [2]]);
    expect((await idsOf(end.deliveries)).map(({ position }) => position).sort()).toEqual([1, 3, 50]);
  });
});

describe('a copied delivery log', () => {
  const copied = async (source: EmbeddedEnd, target: DeliveryLogCopy) =>
    copyDeliveries({
      source: source.deliveries,
      target,
      relocate: async (deliveries) => deliveries,
      onProgress: () => undefined,
    });
  /** The target's log that takes nothing, so that whatever differs still does when it is read back. */
  const deaf = (log: DeliveryLogCopy): DeliveryLogCopy => ({
    logId: () => log.logId(),
    adopt: (id) => log.adopt(id),
    deliveries: (options) => log.deliveries(options),
    withdrawals: () => log.withdrawals(),
    streaks: () => log.streaks(),
    store: async () => undefined,
    storeWithdrawals: async () => undefined,
    storeStreaks: async () => undefined,
  });

  test('has withdrawals, runs of failures and whatever stood there otherwise, as in its source', async () => {
    const [source, target] = [newEnd(), newEnd()];
    await logged(source, [1, 2]);
    await logged(target, [1]);
    await target.queue.withdraw(1, 5_000); // differs, and is put right
    await source.queue.withdraw(9, 5_000);
    await source.deliveries.storeStreaks([{ prefix: 'aaaaaaaaaa', health: RUN }]);
    const report = await copied(source, target.deliveries);
    expect(report.faults).toEqual([
      expect.stringContaining('withdrawal of transaction 1 is in the target only'),
    ]);
    expect(report.deliveries).toBe(2);
    expect(await idsOf(target.deliveries)).toEqual(await idsOf(source.deliveries));
    expect(await target.queue.health('aaaaaaaaaa')).toEqual(RUN);
  });

  test('is told by every delivery, withdrawal and run that is not as in its source', async () => {
    const [source, target] = [newEnd(), newEnd()];
    await logged(source, [1, 2, 3]);
    await logged(target, [1, 3, 4]);
    await source.queue.withdraw(3, 5_000);
    await target.queue.withdraw(5, 5_000);
    await source.deliveries.storeStreaks([
      { prefix: 'aaaaaaaaaa', health: RUN },
      { prefix: 'cccccccccc', health: { failedInARow: 0, failingSinceMs: null, lastAnswers: [] } },
    ]);
    await target.deliveries.storeStreaks([{ prefix: 'bbbbbbbbbb', health: RUN }]);
    const { deliveries, faults } = await copied(source, deaf(target.deliveries));
    expect(deliveries).toBe(1);
    expect(faults.toSorted()).toEqual(
      [
        `delivery ${newDelivery(2).id} is not in the target`,
        `delivery ${newDelivery(3).id} differs`,
        `delivery ${newDelivery(4).id} is in the target only`,
        'the run of failures of key aaaaaaaaaa differs',
        'the run of failures of key bbbbbbbbbb differs',
        'the withdrawal of transaction 3 is not in the target',
        'the withdrawal of transaction 5 is in the target only',
      ].toSorted(),
    );
  });
});

test('a copy erases in the target all that was erased, however much it is', async () => {
  const [source, target] = [await sample(), newEnd()];
  for (let id = 100; id < 155; id++) await source.store.erase(`transaction-${id}`);
  expect((await copyFrom(source, target)).faults).toEqual([]);
  expect(await target.erasedStreams()).toEqual(await source.erasedStreams());
});

test('the parked events of each of the service’s groups are counted, where there are any', async () => {
  const { store, subscriptions } = openForTest(temporaryFolder(), new FakeClock());
  const settings = { prefixes: ['transaction-'], ackTimeoutMs: 5_000, maxRetries: 3 };
  expect(await parkedByGroup(subscriptions)).toEqual([]);
  await store.append([{ stream: 'transaction-1', expected: 'none', events: [named('a'), named('b')] }]);
  const park = async (group: string, count: number): Promise<void> => {
    await subscriptions.ensureGroup(group, settings);
    let left = count;
    const consumer = subscriptions.consume(group, { bufferSize: 1, signal: new AbortController().signal });
    for await (const event of consumer) {
      await consumer.park(event, 'parked');
      if (--left === 0) break;
    }
  };
  await park('notices', 1);
  expect(await parkedByGroup(subscriptions)).toEqual([{ group: 'notices', parked: 1 }]);
  await park('deliveries', 2);
  expect(await parkedByGroup(subscriptions)).toEqual([
    { group: 'deliveries', parked: 2 },
    { group: 'notices', parked: 1 },
  ]);
});
