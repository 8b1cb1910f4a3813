import { describe, expect, test } from 'vitest';
import { FuelError } from '../../../src/base/errors.ts';
import { Unreadable } from '../../../src/event-store/recorded-event.ts';
import { redeliverByIds } from '../../../src/operator/deliveries/redeliver.ts';
import { keyIssued, onKey, PREFIX, webhookSet } from '../../support/accounts/account-samples.ts';
import { claimFrom, claimOptions } from '../../support/deliveries/deliveries.ts';
import { replacing } from '../../support/interposed.ts';
import { cancelled, voided } from '../../support/transactions/e2e-samples.ts';
import { startRedelivering } from './redelivering.ts';

describe('redelivering by id', () => {
  test('makes a failed delivery due again and records that', async () => {
    const { queue, options, ended, store, clock } = await startRedelivering();
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
    const { options, ended, refused } = await startRedelivering();
    const id = await ended(1, 'delivered');
    expect(await redeliverByIds([id], false, options)).toMatchObject({ redelivered: 0, refused: 1 });
    expect(refused).toEqual([[id, expect.stringContaining('--force')]]);
    expect(await redeliverByIds([id], true, options)).toMatchObject({ redelivered: 1, refused: 0 });
  });

  test('refuses voided, cancelled and erased transactions, with force too, and redelivers the others', async () => {
    const { options, ended, refused, append, store } = await startRedelivering();
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
    const { options, ended, refused, append, store } = await startRedelivering();
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
    const { options, ended, store, queue, clock } = await startRedelivering();
    const [due, claimed] = [await ended(1, 'failed'), await ended(2, 'failed')];
    await redeliverByIds([due, claimed], false, options);
    await claimFrom(queue, claimOptions(clock.now(), { limit: 1 }));
    const before = await store.readStream('account-7');
    expect(await redeliverByIds([due, claimed], true, options)).toEqual({
      redelivered: 0,
      unchanged: 2,
      refused: 0,
    });
    expect(await store.readStream('account-7')).toEqual(before);
  });

  test('is recorded for each key under one correlation id, and one key that is off does not stop the others', async () => {
    const { options, ended, account, store, queue, refused } = await startRedelivering();
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
    const { options, ended, store, queue } = await startRedelivering();
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
    const { options, ended, refused, account, store } = await startRedelivering();
    const id = await ended(1, 'failed');
    await account(onKey(type));
    expect(await redeliverByIds([id], true, options)).toMatchObject({ redelivered: 0, refused: 1 });
    expect(refused).toEqual([[id, expect.stringMatching(reason)]]);
    expect((await store.readStream('account-7')).at(-1)?.type).toBe(type);
  });
});

test('an outage ends a redelivery with its error: it is no refusal', async () => {
  const { options, refused, ended } = await startRedelivering();
  const id = await ended(1, 'failed');
  const { writer } = options;
  const store = replacing(writer.store, {
    append: () => Promise.reject(new FuelError('STORE_UNAVAILABLE', 'away')),
  });
  const redelivered = redeliverByIds([id], false, { ...options, writer: { ...writer, store } });
  await expect(redelivered).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  expect(refused).toEqual([]);
});
