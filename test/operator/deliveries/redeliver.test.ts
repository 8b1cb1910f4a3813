import { describe, expect, test } from 'vitest';
import { FuelError } from '../../../src/base/errors.ts';
import type { DomainEvent } from '../../../src/domain/events.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import { Unreadable } from '../../../src/event-store/recorded-event.ts';
import {
  cancelRedelivery,
  countRedeliverable,
  type RedeliverOptions,
  redeliverByIds,
  redeliverOfKey,
} from '../../../src/operator/deliveries/redeliver.ts';
import type { ClaimedDelivery } from '../../../src/push/queue/delivery.ts';
import { keyIssued, onKey, opened, PREFIX, webhookSet } from '../../support/accounts/account-samples.ts';
import {
  claimFrom,
  delivered,
  failed,
  newDelivery,
  held as onHold,
} from '../../support/deliveries/deliveries.ts';
import { listed } from '../../support/deliveries/listed.ts';
import { openPushStores } from '../../support/deliveries/push-stores.ts';
import { interposed, replacing } from '../../support/interposed.ts';
import { cancelled, confirmed, voided } from '../../support/transactions/e2e-samples.ts';

const ofKey = { accountId: 7, prefix: PREFIX, sinceMs: null, untilMs: null, which: 'failed' } as const;

async function start() {
  const stores = openPushStores();
  const { store, clock, author, append } = stores;
  const queue = stores.openQueue();
  await stores.account(opened(), keyIssued(), webhookSet());
  const refused: [string, string][] = [];
  const stopping = new AbortController();
  const options: RedeliverOptions = {
    writer: { store, clock, author },
    queue,
    onRefused: (id, reason) => refused.push([id, reason]),
    onProgress: () => undefined,
    signal: stopping.signal,
  };
  /** Stores a delivery `d<transaction>` that ended so. */
  async function ended(
    transactionId: number,
    kind: 'delivered' | 'failed',
    prefix = PREFIX,
  ): Promise<string> {
    const id = `d${transactionId}`;
    await append(`transaction-${transactionId}`, confirmed(transactionId));
    const nowMs = clock.now();
    const lane = { laneCapacity: () => 1_000, holder: 'test', leaseMs: 5_000, nowMs };
    const createdAtMs = nowMs;
    const [claimed] = await queue.enqueue([newDelivery(transactionId, { id, prefix, createdAtMs })], lane);
    if (claimed === undefined) throw new Error('nothing was claimed');
    await queue.report([kind === 'failed' ? failed(claimed, nowMs) : delivered(claimed, nowMs)]);
    return id;
  }
  /** Stores so many deliveries that ended as failed. */
  async function failedTogether(count: number): Promise<void> {
    const transactions = Array.from({ length: count }, (_, index) => index + 1);
    await store.append(
      transactions.map((id) => ({
        stream: `transaction-${id}`,
        expected: 'none',
        events: [newEvent(confirmed(id) as unknown as DomainEvent, author, clock.now())],
      })),
    );
    await queue.enqueue(transactions.map((id) => newDelivery(id, { prefix: PREFIX })));
    await queue.change({ kind: 'end lane', prefix: PREFIX, reason: 'the webhook was disabled' }, clock.now());
  }
  return { ...stores, queue, options, refused, stopping, ended, failedTogether };
}

describe('redelivering by id', () => {
  test('makes a failed delivery due again and records that', async () => {
    const { queue, options, ended, store, clock } = await start();
    const id = await ended(1, 'failed');
    expect(await redeliverByIds([id, id], false, options)).toEqual({
      redelivered: 1,
      unchanged: 0,
      refused: 0,
    });
    expect(await queue.find(id)).toMatchObject({ state: 'pending', cycle: 2, dueAtMs: clock.now() });
    const last = (await store.readStream('account-7')).at(-1);
    expect(last).toMatchObject({ type: 'RedeliveryRequested', data: { delivery_ids: [id], force: false } });
  });

  test('needs force for a delivered one', async () => {
    const { options, ended, refused } = await start();
    const id = await ended(1, 'delivered');
    expect(await redeliverByIds([id], false, options)).toMatchObject({ redelivered: 0, refused: 1 });
    expect(refused).toEqual([[id, expect.stringContaining('--force')]]);
    expect(await redeliverByIds([id], true, options)).toMatchObject({ redelivered: 1, refused: 0 });
  });

  test('refuses voided, cancelled and erased transactions, with force too, and redelivers the others', async () => {
    const { options, ended, refused, append, store } = await start();
    const ids: string[] = [];
    for (const id of [1, 2, 3, 4]) ids.push(await ended(id, 'delivered'));
    await append('transaction-1', voided(1));
    await append('transaction-2', cancelled(2));
    await store.erase('transaction-3');
    const counts = await redeliverByIds([...ids, 'd5'], true, options);
    expect(counts).toEqual({ redelivered: 1, unchanged: 0, refused: 4 });
    expect(Object.fromEntries(refused)).toEqual({
      d1: expect.stringContaining('voided or cancelled'),
      d2: expect.stringContaining('voided or cancelled'),
      d3: expect.stringContaining('erased'),
      d5: expect.stringContaining('no such delivery'),
    });
  });

  test('refuses a transaction of which an event cannot be read: it may be a void', async () => {
    const { options, ended, refused, append, store } = await start();
    const ids = [await ended(1, 'failed'), await ended(2, 'failed')];
    await append('transaction-1', voided(1));
    const unreadable = replacing(store, {
      readStreams: async (streams) =>
        (await store.readStreams(streams)).map((events) =>
          events.map((event) => {
            const isDamage = event.stream === 'transaction-1';
            if (isDamage && event.revision === 0) return event;
            return { ...event, type: 'Garbled', data: new Unreadable('garbled', { isDamage }) };
          }),
        ),
    });
    const writer = { ...options.writer, store: unreadable };
    expect(await redeliverByIds(ids, true, { ...options, writer })).toMatchObject({ refused: 2 });
    for (const [, reason] of refused) expect(reason).toContain('an event of its transaction cannot be read');
  });

  test('leaves a pending one as it is, and records nothing for it', async () => {
    const { options, ended, store, queue, clock } = await start();
    const [due, held] = [await ended(1, 'failed'), await ended(2, 'failed')];
    await redeliverByIds([due, held], false, options);
    const [claimed] = await claimFrom(queue, {
      ...{ nowMs: clock.now(), holder: 'test', leaseMs: 5_000, limit: 1, laneCapacity: () => 1 },
    });
    await queue.report([onHold(claimed as ClaimedDelivery)]);
    const before = await store.readStream('account-7');
    expect(await redeliverByIds([due, held], true, options)).toEqual({
      redelivered: 0,
      unchanged: 2,
      refused: 0,
    });
    expect(await store.readStream('account-7')).toEqual(before);
  });

  test('is recorded for each key under one correlation id, and one key that is off does not stop the others', async () => {
    const { options, ended, account, store, queue, refused } = await start();
    const [other, off] = ['bbbbbbbbbb', 'cccccccccc'];
    for (const prefix of [other, off]) await account(keyIssued({ prefix }), webhookSet({ prefix }));
    const ids = [await ended(1, 'failed'), await ended(2, 'failed', other), await ended(3, 'failed', off)];
    await account({ type: 'KeySwitchedOff', data: { account_id: 7, prefix: off } });
    const counts: unknown[] = [];
    const result = await redeliverByIds(ids, false, {
      ...options,
      onProgress: (count) => counts.push(count),
    });
    expect(result).toEqual({ redelivered: 2, unchanged: 0, refused: 1 });
    expect(counts).toHaveLength(2);
    expect(refused).toMatchObject([['d3', expect.stringMatching(/fuel key on/)]]);
    expect((await queue.find('d3'))?.state).toBe('failed');
    const requested = (await store.readStream('account-7')).filter(
      ({ type }) => type === 'RedeliveryRequested',
    );
    expect(requested).toMatchObject([
      { data: { prefix: PREFIX, delivery_ids: ['d1'] } },
      { data: { prefix: other, delivery_ids: ['d2'] } },
    ]);
    const correlations = requested.map(
      ({ metadata }) => (metadata as { correlation_id: string }).correlation_id,
    );
    expect(new Set(correlations).size).toBe(1);
  });

  test('is recorded before the first delivery is due', async () => {
    const { options, ended, store, queue } = await start();
    const id = await ended(1, 'failed');
    const redeliver = queue.redeliver.bind(queue);
    let recordedFirst = false;
    queue.redeliver = async (...args) => {
      recordedFirst = (await store.readStream('account-7')).at(-1)?.type === 'RedeliveryRequested';
      return redeliver(...args);
    };
    expect(await redeliverByIds([id], true, options)).toMatchObject({ redelivered: 1 });
    expect(recordedFirst).toBe(true);
    expect((await store.readStream('account-7')).at(-1)).toMatchObject({ data: { force: true } });
  });

  test.each([
    ['KeySwitchedOff', /fuel key on/],
    ['WebhookRemoved', /fuel webhook set/],
    ['WebhookDisabled', /fuel webhook enable/],
  ] as const)('is refused after %s, and nothing is recorded', async (type, reason) => {
    const { options, ended, refused, account, store } = await start();
    const id = await ended(1, 'failed');
    await account(onKey(type));
    expect(await redeliverByIds([id], true, options)).toMatchObject({ redelivered: 0, refused: 1 });
    expect(refused).toEqual([[id, expect.stringMatching(reason)]]);
    expect((await store.readStream('account-7')).at(-1)?.type).toBe(type);
  });
});

const NONE = { unchanged: 0, refused: 0, left_out: 0 };

describe('redelivering what failed', () => {
  test('spreads the due times, and running it again changes nothing', async () => {
    const { queue, options, ended, clock } = await start();
    for (let id = 1; id <= 10; id++) await ended(id, id === 10 ? 'delivered' : 'failed');
    expect(await redeliverOfKey(ofKey, options)).toEqual({ redelivered: 9, ...NONE });
    const due = (await listed(queue, { state: 'pending' })).map(({ dueAtMs }) => dueAtMs ?? 0);
    const step = 20; // fifty a second
    const spread = Array.from({ length: 9 }, (_, index) => clock.now() + index * step);
    expect(due.toSorted((a, b) => a - b)).toEqual(spread);
    expect(await redeliverOfKey(ofKey, options)).toEqual({ redelivered: 0, ...NONE });
  });

  test('takes those created in the given time range, and is recorded with it', async () => {
    const { options, ended, clock, store } = await start();
    await ended(1, 'failed');
    clock.advance(1_000);
    await ended(2, 'failed');
    const sinceMs = clock.now();
    expect(await redeliverOfKey({ ...ofKey, sinceMs }, options)).toMatchObject({ redelivered: 1 });
    const range = { sinceMs: sinceMs - 1_000, untilMs: sinceMs - 1 };
    expect(await redeliverOfKey({ ...ofKey, ...range }, options)).toMatchObject({ redelivered: 1 });
    const [since, until] = [range.sinceMs, range.untilMs].map((ms) => new Date(ms).toISOString());
    expect((await store.readStream('account-7')).at(-1)).toMatchObject({
      type: 'RedeliveryRequested',
      data: { prefix: PREFIX, delivery_ids: null, since, until, force: false },
    });
  });

  test('takes those that were delivered where they are asked for, and is recorded so', async () => {
    const { queue, options, ended, store } = await start();
    for (const [id, kind] of [
      [1, 'failed'],
      [2, 'delivered'],
      [3, 'delivered'],
    ] as const)
      await ended(id, kind);
    const states = async () => (await listed(queue, {})).map(({ id, state }) => `${id} ${state}`).toSorted();
    const ofDelivered = { ...ofKey, which: 'delivered' } as const;
    expect(await countRedeliverable(ofDelivered, options)).toBe(2);
    expect(await redeliverOfKey(ofDelivered, options)).toEqual({ redelivered: 2, ...NONE });
    expect(await states()).toEqual(['d1 failed', 'd2 pending', 'd3 pending']);
    expect((await store.readStream('account-7')).at(-1)?.data).toMatchObject({
      force: true,
      which: 'delivered',
    });
  });

  test('counts nothing of a key that takes no deliveries', async () => {
    const { options, ended, account } = await start();
    await ended(1, 'failed');
    await account(onKey('KeySwitchedOff'));
    await expect(countRedeliverable(ofKey, options)).rejects.toThrow(/is switched off: run fuel key on/);
  });

  test('leaves out what was voided, cancelled or erased, which is no refusal; counting it changes nothing', async () => {
    const { queue, options, ended, append, refused, store } = await start();
    for (const id of [1, 2, 3, 4]) await ended(id, 'failed');
    await append('transaction-2', voided(2));
    await append('transaction-3', cancelled(3));
    await store.erase('transaction-4');
    const before = await store.head();
    expect(await countRedeliverable(ofKey, options)).toBe(1);
    expect([await store.head(), (await listed(queue, { state: 'failed' })).length]).toEqual([before, 4]);
    expect(await redeliverOfKey(ofKey, options)).toEqual({ redelivered: 1, ...NONE, left_out: 3 });
    expect(refused).toEqual([]);
  });

  test('leaves out what is voided while it is done, too', async () => {
    const { options, ended, refused } = await start();
    for (const id of [1, 2]) await ended(id, 'failed');
    const queue = interposed(options.queue, ['redeliver'], async () => {
      await options.queue.change({ kind: 'withdraw', transactionIds: [2] }, 1);
    });
    expect(await redeliverOfKey(ofKey, { ...options, queue })).toEqual({
      ...{ redelivered: 1, ...NONE, left_out: 1 },
    });
    expect(refused).toEqual([]);
  });

  test('is cancelled: what is still to be sent ends, what was not redelivered goes on', async () => {
    const { queue, options, ended, failedTogether, clock, store } = await start();
    await failedTogether(3);
    await queue.enqueue([newDelivery(9, { id: 'live', prefix: PREFIX })]);
    await redeliverOfKey(ofKey, options);
    const cancel = { accountId: 7, prefix: PREFIX, reason: 'the wrong key' };
    expect(await cancelRedelivery(cancel, options)).toBe(3);
    const [last] = await listed(queue, { state: 'failed' });
    expect(last).toMatchObject({ cycle: 2, reason: 'the redelivery was cancelled' });
    expect((await listed(queue, { state: 'pending' })).map(({ id }) => id)).toEqual(['live']);
    expect((await store.readStream('account-7')).at(-1)).toMatchObject({
      type: 'RedeliveryCancelled',
      data: { prefix: PREFIX, reason: 'the wrong key' },
    });
    expect(await cancelRedelivery(cancel, options)).toBe(0);
    clock.advance(1_000);
    await ended(20, 'failed');
    expect(await redeliverOfKey(ofKey, options)).toMatchObject({ redelivered: 4 });
  });

  test('says how far an interrupted one came, since what was delivered is found again', async () => {
    const { options, ended, clock, stopping } = await start();
    await ended(1, 'delivered');
    clock.advance(1_000);
    await ended(2, 'delivered');
    const oldest: number[] = [];
    const onPage = (createdAtMs: number) => void oldest.push(createdAtMs);
    stopping.abort();
    await redeliverOfKey({ ...ofKey, which: 'delivered' }, { ...options, onPage });
    expect(oldest).toEqual([clock.now() - 1_000]);
  });

  test('takes any number, and continues where it was interrupted', async () => {
    const { options, failedTogether, stopping } = await start();
    await failedTogether(520);
    stopping.abort();
    expect(await redeliverOfKey(ofKey, options)).toMatchObject({ redelivered: 500 });
    const again = { ...options, signal: new AbortController().signal };
    expect(await redeliverOfKey(ofKey, again)).toEqual({ redelivered: 20, ...NONE });
  });

  test('takes every page, also where all of one are left out', async () => {
    const { options, failedTogether, store, author, clock } = await start();
    await failedTogether(520);
    await store.append(
      Array.from({ length: 520 }, (_, index) => ({
        stream: `transaction-${index + 1}`,
        expected: 'any' as const,
        events: [newEvent(voided(index + 1) as unknown as DomainEvent, author, clock.now())],
      })),
    );
    expect(await redeliverOfKey(ofKey, options)).toEqual({ redelivered: 0, ...NONE, left_out: 520 });
  });

  test('is refused while the webhook is disabled', async () => {
    const { options, ended, account } = await start();
    await ended(1, 'failed');
    await account(onKey('WebhookDisabled'));
    await expect(redeliverOfKey(ofKey, options)).rejects.toMatchObject({ code: 'REFUSED' });
  });
});

test('an outage ends a redelivery with its error: it is no refusal', async () => {
  const { options, refused, ended } = await start();
  const id = await ended(1, 'failed');
  const { writer } = options;
  const store = replacing(writer.store, {
    append: () => Promise.reject(new FuelError('STORE_UNAVAILABLE', 'away')),
  });
  const redelivered = redeliverByIds([id], false, { ...options, writer: { ...writer, store } });
  await expect(redelivered).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  expect(refused).toEqual([]);
});
