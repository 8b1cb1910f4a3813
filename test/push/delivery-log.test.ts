import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { DomainEvent } from '../../src/domain/events.ts';
import { openSqliteEventStore } from '../../src/engines/sqlite/event-store/event-store.ts';
import { newEvent } from '../../src/event-store/new-event.ts';
import { operationsOf } from '../../src/event-store/operations.ts';
import { claimDeliveryLog } from '../../src/push/delivery-log.ts';
import { queueInFile } from '../support/deliveries/open-queue.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

function open() {
  const clock = new FakeClock();
  const store = openSqliteEventStore({ path: join(temporaryFolder(), 'events.db'), clock });
  onTestFinished(() => store.close());
  const log = () => {
    const queue = queueInFile({ path: join(temporaryFolder(), 'deliveries.db'), clock });
    onTestFinished(() => queue.close());
    return queue;
  };
  return { clock, store, log };
}

test('a new delivery log is recorded once, however many processes start with it', async () => {
  const { clock, store, log } = open();
  const queue = log();
  await Promise.all([claimDeliveryLog(store, queue, clock), claimDeliveryLog(store, queue, clock)]);
  await claimDeliveryLog(store, queue, clock);
  const { id } = await queue.logId();
  expect(await store.readStream('operations')).toMatchObject([
    {
      type: 'DeliveryLogStarted',
      data: { log_id: id, started_at: new Date(clock.now()).toISOString() },
      metadata: { actor: 'system' },
    },
  ]);
});

test('another log than the recorded one is refused, with what to do', async () => {
  const { clock, store, log } = open();
  await claimDeliveryLog(store, log(), clock);
  await expect(claimDeliveryLog(store, log(), clock)).rejects.toMatchObject({
    code: 'STORE_MISMATCH',
    message: expect.stringContaining('fuel verify deliveries --repair --resend-unknown'),
  });
  expect(await store.readStream('operations')).toHaveLength(1);
});

test('of two processes that start at once with a log each, one starts and the other is refused', async () => {
  const { clock, store, log } = open();
  const logs = [log(), log()];
  const results = await Promise.allSettled(logs.map((queue) => claimDeliveryLog(store, queue, clock)));
  expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  expect(results.find(({ status }) => status === 'rejected')).toMatchObject({
    reason: { code: 'STORE_MISMATCH' },
  });
  expect(await store.readStream('operations')).toHaveLength(1);
});

test('the log that was recorded last counts, and events that cannot be read are ignored', async () => {
  const { clock, store } = open();
  const record = async (type: string, data: object): Promise<void> => {
    const event = newEvent(
      { type, data } as unknown as DomainEvent,
      { actor: 'a', command: 'c' },
      clock.now(),
    );
    await store.append([{ stream: 'operations', expected: 'any', events: [event] }]);
  };
  expect((await operationsOf(store)).deliveryLog).toBeUndefined();
  await record('StoreNamed', { store_id: 'x' });
  await record('DeliveryLogStarted', { log_id: 'first', started_at: '2026-09-01T00:00:00.000Z' });
  await record('DeliveryLogStarted', { log_id: 'second', started_at: '2026-09-02T00:00:00.000Z' });
  await record('AgreementRepaired', { what: 'deliveries', repaired: 1 });
  await record('DeliveryLogStarted', { log_id: 7 });
  expect((await operationsOf(store)).deliveryLog).toEqual({
    id: 'second',
    firstStartedAtMs: Date.parse('2026-09-01T00:00:00.000Z'),
  });
});

test('a log is recorded whatever else is in the stream of operations', async () => {
  const { clock, store, log } = open();
  const named = newEvent({ type: 'StoreNamed', data: { store_id: 'x' } }, { actor: 'a', command: 'c' }, 0);
  await store.append([{ stream: 'operations', expected: 'none', events: [named] }]);
  const queue = log();
  await claimDeliveryLog(store, queue, clock);
  expect((await operationsOf(store)).deliveryLog?.id).toBe((await queue.logId()).id);
});
