import { expect, test } from 'vitest';
import { FuelError } from '../../../src/base/errors.ts';
import { jsonBytes, MAX_BATCH_BYTES } from '../../../src/event-store/batch-bytes.ts';
import type { RecordedEvent } from '../../../src/event-store/recorded-event.ts';
import { deliveryId } from '../../../src/push/message/envelope.ts';
import type { NewDelivery } from '../../../src/push/queue/delivery.ts';
import { keyIssued, onKey, PREFIX, webhookSet } from '../../support/accounts/account-samples.ts';
import { settle } from '../../support/deliveries/fake-alarm-clock.ts';
import type { PushMachine } from '../../support/deliveries/push.ts';
import { pushMachine } from '../../support/deliveries/push-machine.ts';
import { confirmedData, externalData } from '../../support/transactions/records.ts';

const DAY_MS = 86_400_000;

const find = (m: PushMachine, transactionId: number, prefix = PREFIX) =>
  m.queue.find(deliveryId(prefix, transactionId));
const at = (m: PushMachine) => new Date(m.clock.now()).toISOString();

test('each key that is owed one gets one delivery, with the number as that key shows it', async () => {
  const m = await pushMachine();
  const shown = { prefix: 'bbbbbbbbbb', driver_mobile: true };
  await m.account(
    keyIssued(shown),
    webhookSet({ prefix: 'bbbbbbbbbb' }),
    keyIssued({ prefix: 'cccccccccc' }),
  );
  const event = await m.confirm(501);
  expect(await m.fan(event)).toMatchObject([{ kind: 'ack' }]);
  expect(await find(m, 501)).toMatchObject({
    accountId: 7,
    transactionId: 501,
    type: 'transaction.confirmed',
    position: event.position,
    occurredAtMs: m.clock.now(),
    record: expect.stringContaining('"driver":{"id":77,"name":"Sam Field"},"fees"'),
  });
  expect((await find(m, 501, 'bbbbbbbbbb'))?.record).toContain('"mobile_number":"+15550100"}');
  expect(await find(m, 501, 'cccccccccc')).toBeUndefined();
});

test('an external transaction has a separate event type', async () => {
  const m = await pushMachine();
  const data = externalData({ transaction_id: 502, created_at: at(m) });
  await m.fan(await m.record('transaction-502', { type: 'ExternalTransactionRecorded', data } as never));
  expect(await find(m, 502)).toMatchObject({ type: 'transaction.external' });
});

test('handling an event again changes nothing and sends nothing', async () => {
  const m = await pushMachine();
  const event = await m.confirm(501);
  await m.fan(event, event);
  await m.clock.advance(50);
  await m.fan(event);
  await m.clock.advance(50);
  expect(m.sender.sent).toHaveLength(1);
});

test('what is owed is decided as of the event, however late it is handled', async () => {
  const m = await pushMachine();
  await m.account(keyIssued({ prefix: 'bbbbbbbbbb' }));
  const before = await m.confirm(501);
  await m.account(webhookSet({ prefix: 'bbbbbbbbbb' }), onKey('WebhookDisabled'));
  const during = await m.confirm(502);
  await m.account(onKey('WebhookEnabled'));
  await m.fan(before, during);
  expect(await find(m, 501)).toBeDefined();
  expect(await find(m, 501, 'bbbbbbbbbb')).toBeUndefined();
  expect(await find(m, 502)).toBeUndefined();
  expect(await find(m, 502, 'bbbbbbbbbb')).toBeDefined();
});

test('a transaction that is voided is never sent, whichever of its events comes first', async () => {
  const m = await pushMachine();
  const [confirmed, voided] = [await m.confirm(501), await m.void(501)];
  await m.fan(confirmed, voided);
  const [other, otherVoided] = [await m.confirm(502), await m.void(502)];
  await m.fan(otherVoided);
  await m.fan(other);
  await m.clock.advance(1_000);
  expect(m.sender.sent).toEqual([]);
  expect((await find(m, 501))?.state).toBe('withdrawn');
  expect((await find(m, 502))?.state).toBe('withdrawn');
});

test('an event that cannot be shown is parked with the reason, and does not stop the others beside it', async () => {
  const m = await pushMachine();
  const broken = await m.record('transaction-501', {
    type: 'TransactionConfirmed',
    data: { ...confirmedData(), fees: null },
  } as never);
  const fine = await m.confirm(502);
  const results = await m.fan(broken, fine);
  expect(results).toMatchObject([{ kind: 'park', reason: 'fees: must be an object' }, { kind: 'ack' }]);
  expect(await find(m, 502)).toBeDefined();
});

test('a repeated record is passed over; one with other content, and a void of another account, are parked', async () => {
  const m = await pushMachine();
  const first = await m.confirm(501, { created_at: '2020-01-01T00:00:00.000Z' }); // before the URL was set
  const same = await m.confirm(501, { created_at: '2020-01-01T00:00:00.000Z' });
  const other = await m.confirm(501);
  const foreign = { transaction_id: 501, account_id: 8, voided_at: at(m), reason: null };
  const voided = await m.record('transaction-501', { type: 'TransactionVoided', data: foreign });
  expect(await m.fan(other, same, first, voided)).toMatchObject([
    { kind: 'park', reason: expect.stringContaining('with other content') },
    { kind: 'ack' },
    { kind: 'park', reason: expect.stringContaining('it belongs to account 7') },
    { kind: 'ack' },
  ]);
  expect(await find(m, 501)).toBeUndefined();
});

test('an event is no older because of a clock that is ahead', async () => {
  const m = await pushMachine();
  const event = await m.confirm(501);
  await m.clock.jump(100 * DAY_MS);
  await m.fan(event);
  expect(await find(m, 501)).toMatchObject({ createdAtMs: m.clock.now() });
});

test('what an event owes to many keys is stored some MiB at a time', async () => {
  const stored: (readonly NewDelivery[])[] = [];
  const m = await pushMachine({
    onCommit: (name, [deliveries], commit) => {
      if (name === 'enqueue') stored.push(deliveries as readonly NewDelivery[]);
      return commit();
    },
  });
  const prefixes = Array.from({ length: 120 }, (_, index) => `k${index}`.padEnd(10, 'x'));
  await m.account(...prefixes.flatMap((prefix) => [keyIssued({ prefix }), webhookSet({ prefix })]));
  const text = '\u0001'.repeat(1_000); // six characters each as JSON
  const vehicle = { ...(confirmedData().vehicle as object), code: text, number_plate: text, brand: text };
  const names = { corporate: { id: 31, name: text }, corporate_group: { id: 3, name: text } };
  const data = confirmedData({ ...names, vehicle, created_at: at(m) });
  const driver = { id: 77, name: text };
  const events = [501, 502, 503, 504].map((transaction_id) => ({
    type: 'TransactionConfirmed',
    data: { ...data, driver, transaction_id },
  }));
  const recorded = [];
  for (const event of events) {
    recorded.push(await m.record(`transaction-${event.data.transaction_id}`, event as never));
  }
  await m.fan(...recorded);
  expect(stored.flat()).toHaveLength(4 * 121);
  const bytes = stored.map((deliveries) =>
    deliveries.reduce((sum, { record }) => sum + jsonBytes(record), 0),
  );
  expect(Math.max(...bytes)).toBeLessThan(MAX_BATCH_BYTES + 50_000);
  for (const prefix of [PREFIX, ...prefixes]) expect(await find(m, 504, prefix)).toBeDefined();
});

test('while a part of many deliveries is being stored no further event is judged, and a failure is the caller’s', async () => {
  const m = await pushMachine();
  const prefixes = Array.from({ length: 399 }, (_, n) => `key${String(n).padStart(7, '0')}`);
  await m.account(...prefixes.flatMap((prefix) => [keyIssued({ prefix }), webhookSet({ prefix })]));
  const events = [await m.confirm(501), await m.confirm(502), await m.confirm(503), await m.confirm(504)];
  const stored = Promise.withResolvers<void>();
  const accepted: number[] = [];
  const fanOut = m.fanOutTo(async (some) => {
    accepted.push(some.length);
    if (accepted.length === 1) await stored.promise;
  });
  const handling = fanOut.handle(events.map((event) => ({ event, retryCount: 0 })));
  await settle();
  expect(accepted).toEqual([1_000]);
  stored.reject(new FuelError('STORE_UNAVAILABLE', 'gone'));
  await expect(handling).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  expect(accepted).toEqual([1_000]);
  expect(await fanOut.handle([{ event: events[0] as RecordedEvent, retryCount: 0 }])).toHaveLength(1);
  expect(accepted).toEqual([1_000, 400]);
});
