import { join } from 'node:path';
import { pino } from 'pino';
import { describe, expect, onTestFinished, test } from 'vitest';
import { FuelError } from '../../../src/base/errors.ts';
import { openSqliteSubscriptions } from '../../../src/engines/sqlite/event-store/subscriptions.ts';
import { jsonBytes, MAX_BATCH_BYTES } from '../../../src/event-store/batch-bytes.ts';
import type { RecordedEvent } from '../../../src/event-store/recorded-event.ts';
import { DELIVERIES_GROUP, runFanOut } from '../../../src/push/fan-out/run-fan-out.ts';
import { deliveryId } from '../../../src/push/message/envelope.ts';
import type { NewDelivery } from '../../../src/push/queue/delivery.ts';
import { keyIssued, onKey, PREFIX, webhookSet } from '../../support/accounts/account-samples.ts';
import { settle } from '../../support/deliveries/fake-scheduler.ts';
import { countByState } from '../../support/deliveries/listed.ts';
import { type CommitWatcher, PushMachine, READY } from '../../support/deliveries/push.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { confirmedData, externalData } from '../../support/transactions/records.ts';

const DAY_MS = 86_400_000;

async function machine(onCommit?: CommitWatcher): Promise<PushMachine & { folder: string }> {
  const folder = temporaryFolder();
  const opened = Object.assign(new PushMachine(folder), { folder });
  onTestFinished(() => opened.close());
  if (onCommit !== undefined) opened.onCommit = onCommit;
  await opened.account(...READY);
  opened.start();
  await settle();
  return opened;
}

const find = (m: PushMachine, transactionId: number, prefix = PREFIX) =>
  m.queue.find(deliveryId(prefix, transactionId));
const at = (m: PushMachine) => new Date(m.scheduler.now()).toISOString();

test('each key that is owed one gets one delivery, with the number as that key shows it', async () => {
  const m = await machine();
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
    recordedAtMs: m.scheduler.now(),
    record: { mobileNumber: null, pump: 'photos/501/pump.jpg' },
  });
  expect((await find(m, 501, 'bbbbbbbbbb'))?.record.mobileNumber).toBe('"+15550100"');
  expect(await find(m, 501, 'cccccccccc')).toBeUndefined();
});

test('an external transaction has a separate event type', async () => {
  const m = await machine();
  const data = externalData({ transaction_id: 502, created_at: at(m) });
  await m.fan(await m.record('transaction-502', { type: 'ExternalTransactionRecorded', data } as never));
  expect(await find(m, 502)).toMatchObject({ type: 'transaction.external' });
});

test('handling an event again changes nothing and sends nothing', async () => {
  const m = await machine();
  const event = await m.confirm(501);
  await m.fan(event, event);
  await m.scheduler.advance(50);
  await m.fan(event);
  await m.scheduler.advance(50);
  expect(m.sender.sent).toHaveLength(1);
});

test('what is owed is decided as of the event, however late it is handled', async () => {
  const m = await machine();
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
  const m = await machine();
  const [confirmed, voided] = [await m.confirm(501), await m.void(501)];
  await m.fan(confirmed, voided);
  const [other, otherVoided] = [await m.confirm(502), await m.void(502)];
  await m.fan(otherVoided);
  await m.fan(other);
  await m.scheduler.advance(1_000);
  expect(m.sender.sent).toEqual([]);
  expect((await find(m, 501))?.state).toBe('withdrawn');
  expect((await find(m, 502))?.state).toBe('withdrawn');
});

test('an event that can not be shown is parked with the reason, and does not stop the others beside it', async () => {
  const m = await machine();
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
  const m = await machine();
  const first = await m.confirm(501, { created_at: '2020-01-01T00:00:00.000Z' }); // before the URL was set
  const same = await m.confirm(501, { created_at: '2020-01-01T00:00:00.000Z' });
  const other = await m.confirm(501);
  const foreign = { transaction_id: 501, account_id: 8, voided_at: at(m), reason: null };
  const voided = await m.record('transaction-501', { type: 'TransactionVoided', data: foreign });
  expect(await m.fan(other, same, first, voided)).toMatchObject([
    { kind: 'park', reason: 'it was recorded before, with other content' },
    { kind: 'ack' },
    { kind: 'park', reason: 'it belongs to account 7' },
    { kind: 'ack' },
  ]);
  expect(await find(m, 501)).toBeUndefined();
});

test('an event recorded longer ago than the retention creates nothing', async () => {
  const m = await machine();
  const old = await m.confirm(501);
  await m.scheduler.jump(90 * DAY_MS);
  const edge = await m.fan(old);
  expect(edge).toMatchObject([{ kind: 'ack' }]);
  expect(await find(m, 501)).toBeDefined();
  const older = await m.confirm(502);
  await m.scheduler.jump(90 * DAY_MS + 1);
  await m.fan(older);
  expect(await find(m, 502)).toBeUndefined();
});

test('an event is no older because of a clock that is ahead', async () => {
  const m = await machine();
  const event = await m.confirm(501);
  m.aheadMs = 100 * DAY_MS;
  await m.scheduler.jump(100 * DAY_MS);
  await m.fan(event);
  expect(await find(m, 501)).toMatchObject({ createdAtMs: m.scheduler.now() });
});

test('deliveries of an account that can not be read wait, longer each time, and others continue', async () => {
  const m = await machine();
  await m.record('account-9', { type: 'IntegrationEnabled', data: { account_id: 9 } });
  const closed = await m.confirm(501, { account_id: 9 });
  const fine = await m.confirm(502);
  const results = await m.fanOut.handle([
    { event: closed, retryCount: 3 },
    { event: fine, retryCount: 0 },
  ]);
  expect(results).toMatchObject([
    { kind: 'retry', delayMs: 8_000, reason: 'IntegrationEnabled before the account was opened' },
    { kind: 'ack' },
  ]);
  expect(await find(m, 502)).toBeDefined();
});

describe('the running fan-out', () => {
  async function run(m: PushMachine & { folder: string }, lines: string[] = []) {
    const path = join(m.folder, 'subscriptions.db');
    const subscriptions = openSqliteSubscriptions({ path, store: m.store, clock: m.scheduler });
    const stop = new AbortController();
    const log = pino({ base: null }, { write: (line: string) => void lines.push(line) });
    const { fanOut } = m;
    const ended = runFanOut({ subscriptions, fanOut, log, signal: stop.signal });
    return {
      subscriptions,
      end: async () => {
        stop.abort();
        await ended;
        await subscriptions.close();
      },
    };
  }

  const until = async (condition: () => boolean | Promise<boolean>) => {
    while (!(await condition())) await settle();
  };

  test('reads from the start of the log, continues live, and after a restart where it ended', async () => {
    const m = await machine();
    await m.confirm(501);
    const first = await run(m);
    await until(async () => (await find(m, 501)) !== undefined);
    await m.confirm(502);
    await until(async () => (await find(m, 502)) !== undefined);
    await first.end();
    await m.confirm(503);
    const second = await run(m);
    await until(async () => (await find(m, 503)) !== undefined);
    await second.end();
    await m.scheduler.advance(100); // the receiver gets one after the other at first
    expect(m.sender.sent).toHaveLength(3);
  });

  test('parks what can not be read, so that the operator finds it with its reason', async () => {
    const m = await machine();
    await m.record('transaction-501', {
      type: 'TransactionConfirmed',
      data: { transaction_id: 501 },
    } as never);
    const running = await run(m);
    await until(async () => (await running.subscriptions.parked(DELIVERIES_GROUP)).length === 1);
    const [parked] = await running.subscriptions.parked(DELIVERIES_GROUP);
    expect(parked).toMatchObject({ event: { stream: 'transaction-501' }, reason: expect.any(String) });
    await running.end();
  });

  test('waits while the delivery log is unavailable, and then delivers everything without having parked any of it', async () => {
    const m = await machine();
    const enqueue = m.queue.enqueue.bind(m.queue);
    let refusals = 0;
    m.queue.enqueue = async (...all) => {
      if (refusals++ < 2) throw new FuelError('STORE_UNAVAILABLE', 'the disk is full');
      return enqueue(...all);
    };
    const lines: string[] = [];
    for (let transaction = 1; transaction <= 5; transaction++) await m.confirm(transaction);
    const running = await run(m, lines);
    await until(async () => (await find(m, 5)) !== undefined);
    expect(await running.subscriptions.parked(DELIVERIES_GROUP)).toEqual([]);
    await running.end();
    expect(lines.filter((line) => line.includes('fan-out waits: a store is unavailable'))).toHaveLength(1);
    expect(lines.filter((line) => line.includes('fan-out continues'))).toHaveLength(1);
    expect(await countByState(m.queue)).toMatchObject({ pending: 5 });
  });

  test('parks an event that the delivery log refuses, with its reason, and delivers the others', async () => {
    const m = await machine();
    const enqueue = m.queue.enqueue.bind(m.queue);
    m.queue.enqueue = async (deliveries, ...rest) => {
      if (deliveries.some(({ transactionId }) => transactionId === 3)) {
        throw new FuelError('ITEM_REFUSED', 'the document is too large');
      }
      return enqueue(deliveries, ...rest);
    };
    for (let transaction = 1; transaction <= 5; transaction++) await m.confirm(transaction);
    const running = await run(m);
    const parked = () => running.subscriptions.parked(DELIVERIES_GROUP);
    await until(async () => (await parked()).length > 0 && (await find(m, 5)) !== undefined);
    expect(await parked()).toMatchObject([
      { event: { stream: 'transaction-3' }, reason: 'the document is too large' },
    ]);
    await running.end();
    expect(await countByState(m.queue)).toMatchObject({ pending: 4 });
  });

  test('parks an event at which the program itself fails, under the name of the fault', async () => {
    const m = await machine();
    const handle = m.fanOut.handle.bind(m.fanOut);
    m.fanOut.handle = async (events) => {
      if (events.some(({ event }) => event.stream === 'transaction-2')) throw new TypeError('no such member');
      return handle(events);
    };
    for (let transaction = 1; transaction <= 3; transaction++) await m.confirm(transaction);
    const running = await run(m);
    const parked = () => running.subscriptions.parked(DELIVERIES_GROUP);
    await until(async () => (await parked()).length > 0 && (await find(m, 3)) !== undefined);
    expect(await parked()).toMatchObject([
      { event: { stream: 'transaction-2' }, reason: 'TypeError: no such member' },
    ]);
    await running.end();
    expect(await countByState(m.queue)).toMatchObject({ pending: 2 });
  });
});

test('what an event owes to many keys is stored some MiB at a time', async () => {
  const stored: (readonly NewDelivery[])[] = [];
  const m = await machine((name, [deliveries], commit) => {
    if (name === 'enqueue') stored.push(deliveries as readonly NewDelivery[]);
    return commit();
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
  const m = await machine();
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
