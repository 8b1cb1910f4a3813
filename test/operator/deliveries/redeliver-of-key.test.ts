import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { world } from '../../../src/base/world.ts';
import type { DomainEvent } from '../../../src/domain/events.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import {
  cancelRedelivery,
  countRedeliverable,
  redeliverOfKey,
} from '../../../src/operator/deliveries/redeliver.ts';
import { onKey, PREFIX } from '../../support/accounts/account-samples.ts';
import { newDelivery } from '../../support/deliveries/deliveries.ts';
import { listed } from '../../support/deliveries/listed.ts';
import { interposed } from '../../support/interposed.ts';
import { cancelled, voided } from '../../support/transactions/e2e-samples.ts';
import { startRedelivering } from './redelivering.ts';

const ofKey = { accountId: 7, prefix: PREFIX, sinceMs: null, untilMs: null, which: 'failed' } as const;

const NONE = { unchanged: 0, refused: 0, left_out: 0 };

describe('redelivering what failed', () => {
  test('spreads the due times, and running it again changes nothing', async () => {
    const { queue, options, ended, clock } = await startRedelivering();
    for (let id = 1; id <= 10; id++) await ended(id, id === 10 ? 'delivered' : 'failed');
    expect(await redeliverOfKey(ofKey, options)).toEqual({ redelivered: 9, ...NONE });
    const due = (await listed(queue, { state: 'pending' })).map(({ dueAtMs }) => dueAtMs ?? 0);
    const step = 20; // fifty a second
    const spread = Array.from({ length: 9 }, (_, index) => clock.now() + index * step);
    expect(due.toSorted((a, b) => a - b)).toEqual(spread);
    expect(await redeliverOfKey(ofKey, options)).toEqual({ redelivered: 0, ...NONE });
  });

  test('takes those created in the given time range, and is recorded with it', async () => {
    const { options, ended, clock, store } = await startRedelivering();
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
    const { queue, options, ended, store } = await startRedelivering();
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
    const { options, ended, account } = await startRedelivering();
    await ended(1, 'failed');
    await account(onKey('KeySwitchedOff'));
    await expect(countRedeliverable(ofKey, options)).rejects.toThrow(/is switched off\. Run `fuel key on/);
  });

  test('leaves out what was voided, cancelled or erased, which is no refusal; counting it changes nothing', async () => {
    const { queue, options, ended, append, refused, store } = await startRedelivering();
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
    const { options, ended, refused } = await startRedelivering();
    for (const id of [1, 2]) await ended(id, 'failed');
    const queue = interposed(options.queue, ['redeliver'], async () => {
      await options.queue.change({ kind: 'withdraw', transactionIds: [2] }, 1);
    });
    expect(await redeliverOfKey(ofKey, { ...options, queue })).toEqual({
      redelivered: 1,
      ...NONE,
      left_out: 1,
    });
    expect(refused).toEqual([]);
  });

  test('is cancelled: what is still to be sent ends, what was not redelivered goes on', async () => {
    const { queue, options, ended, failedTogether, clock, store } = await startRedelivering();
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
    const { options, ended, clock, stopping } = await startRedelivering();
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
    const { options, failedTogether, stopping } = await startRedelivering();
    await failedTogether(520);
    stopping.abort();
    expect(await redeliverOfKey(ofKey, options)).toMatchObject({ redelivered: 500 });
    const again = { ...options, signal: new AbortController().signal };
    expect(await redeliverOfKey(ofKey, again)).toEqual({ redelivered: 20, ...NONE });
  });

  test('waits until the next ones are due within five minutes', async () => {
    const { options, failedTogether, clock } = await startRedelivering();
    await failedTogether(2);
    const pauses: unknown[] = [];
    const sleep = vi.spyOn(world, 'sleep').mockImplementation(async (ms) => void pauses.push(ms));
    onTestFinished(() => sleep.mockRestore());
    const onProgress = () => clock.advance(-360_000); // as if these had been eighteen thousand
    expect(await redeliverOfKey(ofKey, { ...options, onProgress })).toMatchObject({ redelivered: 2 });
    expect(pauses).toEqual([60_020]);
  });

  test('takes every page, also where all of one are left out', async () => {
    const { options, failedTogether, store, author, clock } = await startRedelivering();
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
    const { options, ended, account } = await startRedelivering();
    await ended(1, 'failed');
    await account(onKey('WebhookDisabled'));
    await expect(redeliverOfKey(ofKey, options)).rejects.toMatchObject({ code: 'REFUSED' });
  });
});
