import { describe, expect, test } from 'vitest';
import { repairDeliveries, withdrawnAmong } from '../../src/agreement/repair-deliveries.ts';
import { type VerifyDeliveriesOptions, verifyDeliveries } from '../../src/agreement/verify-deliveries.ts';
import { deliveryId } from '../../src/deliveries/message/delivery-id.ts';
import type { NewDelivery } from '../../src/deliveries/queue/delivery-queue.ts';
import type { DomainEvent } from '../../src/domain/events.ts';
import { newEvent } from '../../src/event-store/new-event.ts';
import { keyIssued, onKey, opened, PREFIX, webhookSet } from '../support/accounts/account-samples.ts';
import { claimOptions, delivered, held, newDelivery } from '../support/deliveries/deliveries.ts';
import { openPushStores } from '../support/deliveries/push-stores.ts';
import { cancelled, confirmed, voided } from '../support/transactions/e2e-samples.ts';

const DAY_MS = 86_400_000;
const AFTER_URL = { created_at: '2026-09-03T08:00:00.000Z' };
const range = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

async function start() {
  const stores = openPushStores();
  const { store, clock, append, author } = stores;
  const queue = stores.openQueue();
  await stores.account(opened(), keyIssued(), webhookSet());
  const verify = (overrides: Partial<VerifyDeliveriesOptions> = {}) =>
    verifyDeliveries({
      store,
      queue,
      clock,
      environment: 'staging',
      retentionMs: 90 * DAY_MS,
      logStartedAtMs: clock.now() - 60_000,
      settleMs: 0,
      ...overrides,
    });
  const confirm = (id: number) => append(`transaction-${id}`, confirmed(id, AFTER_URL));
  /** A transaction that the store takes now, and whose metadata says that it was recorded then. */
  const copy = async (id: number, recordedAtMs: number) => {
    const event = newEvent(confirmed(id, AFTER_URL) as unknown as DomainEvent, author, recordedAtMs);
    await store.append([{ stream: `transaction-${id}`, expected: 'none', events: [event] }]);
  };
  const owed = (n: number, overrides: Partial<NewDelivery> = {}) =>
    newDelivery(n, { id: deliveryId(PREFIX, n), prefix: PREFIX, recordedAtMs: clock.now(), ...overrides });
  const repair = (missing: readonly NewDelivery[], onProgress?: (stored: number) => void) =>
    repairDeliveries(
      missing,
      { newLog: false },
      { store, queue, clock, author, ...(onProgress && { onProgress }) },
    );
  return { ...stores, queue, verify, confirm, copy, owed, repair };
}

describe('verifying deliveries', () => {
  test('goes by the time in the metadata, which a copy keeps', async () => {
    const { verify, copy, clock } = await start();
    const nowMs = clock.now();
    await copy(1, nowMs - DAY_MS);
    await copy(2, nowMs - DAY_MS - 1);
    const dayOld = { retentionMs: DAY_MS, logStartedAtMs: 0 };
    expect(await verify(dayOld)).toMatchObject({ owed: 1, missing: [{ transactionId: 1 }], notJudged: 1 });
    const since = { logStartedAtMs: nowMs - DAY_MS };
    expect(await verify(since)).toMatchObject({ owed: 1, missing: [{ transactionId: 1 }], notJudged: 1 });
    const asked = { logStartedAtMs: 0, sinceMs: nowMs - DAY_MS - 1, untilMs: nowMs - DAY_MS - 1 };
    expect(await verify(asked)).toMatchObject({ owed: 1, missing: [{ transactionId: 2 }], notJudged: 0 });
  });

  test('judges what was recorded at the very start and end of the time that is asked for', async () => {
    const { verify, confirm, clock } = await start();
    await confirm(1);
    const atMs = clock.now();
    expect(await verify({ sinceMs: atMs, untilMs: atMs })).toMatchObject({ owed: 1 });
    expect(await verify({ sinceMs: atMs + 1 })).toMatchObject({ owed: 0 });
    expect(await verify({ untilMs: atMs - 1 })).toMatchObject({ owed: 0 });
  });

  test('counts what is owed by the state it is in', async () => {
    const { verify, confirm, queue, owed, clock } = await start();
    for (const n of range(5)) await confirm(n);
    await queue.enqueue(range(4).map((n) => owed(n, { createdAtMs: clock.now() })));
    const [first, second] = await queue.claim(claimOptions(clock.now(), { limit: 2 }));
    if (first === undefined || second === undefined) throw new Error('nothing to claim');
    await queue.report([delivered(first, clock.now()), held(second)]);
    await queue.endLane('noSuchLane', 'x', clock.now());
    const { states, missing } = await verify();
    expect(states).toEqual({ pending: 2, held: 1, delivered: 1, failed: 0, withdrawn: 0 });
    expect(missing).toMatchObject([{ transactionId: 5 }]);
  });

  test('reads a log of any length', async () => {
    const { verify, queue, owed } = await start();
    await queue.enqueue(range(1_003).map((n) => owed(n, { id: `surplus-${n}` })));
    const { surplus } = await verify();
    expect(new Set(surplus.map(({ id }) => id)).size).toBe(1_003);
  });

  test('finds nothing amiss with what is recorded and stored while it reads', async () => {
    const { verify, confirm, queue, owed, store } = await start();
    await confirm(1);
    await queue.enqueue([owed(1)]);
    let meanwhile = async (): Promise<void> => {
      meanwhile = async () => undefined;
      await confirm(2);
      await queue.enqueue([owed(2)]);
    };
    const reading = new Proxy(queue, {
      get(target, name) {
        const member = Reflect.get(target, name, target) as unknown;
        if (typeof member !== 'function') return member;
        if (name !== 'list') return member.bind(target);
        return async (...args: unknown[]) => {
          const page: unknown = await member.apply(target, args);
          await meanwhile();
          return page;
        };
      },
    });
    const subscribing = new Proxy(store, {
      get(target, name) {
        const member = Reflect.get(target, name, target) as unknown;
        if (typeof member !== 'function') return member;
        if (name !== 'subscribe') return member.bind(target);
        return async function* (...args: unknown[]) {
          yield* member.apply(target, args) as AsyncIterable<unknown>;
          await meanwhile();
        };
      },
    });
    const agreement = await verify({ queue: reading, store: subscribing });
    expect(agreement).toMatchObject({ owed: 2, missing: [], surplus: [], states: { pending: 2 } });
  });

  test('gives what was recorded a moment ago its time to arrive in the log', async () => {
    const { verify, confirm, queue, owed } = await start();
    await confirm(1);
    await confirm(2);
    const verifying = verify({ settleMs: 100, onProgress: () => void queue.enqueue([owed(2)]) });
    expect(await verifying).toMatchObject({
      owed: 2,
      missing: [{ transactionId: 1 }],
      states: { pending: 1 },
    });
  });

  test('judges one account by its own transactions and deliveries', async () => {
    const { verify, confirm, append, account, queue, owed } = await start();
    const eight = { prefix: 'bbbbbbbbbb', account_id: 8 };
    await account(opened());
    await append('account-8', opened('Eight', 8), keyIssued(eight), webhookSet(eight));
    await confirm(1);
    await append('transaction-2', confirmed(2, { ...AFTER_URL, account_id: 8 }));
    await queue.enqueue([owed(9, { id: 'surplus-7' }), owed(9, { id: 'surplus-8', accountId: 8 })]);
    const of = async (accountId: number) => {
      const { missing, surplus } = await verify({ accountId });
      return [missing.map(({ transactionId }) => transactionId), surplus.map(({ id }) => id)];
    };
    expect(await of(8)).toEqual([[2], ['surplus-8']]);
  });
});

describe('repairing deliveries', () => {
  test('stores those of cancelled and voided transactions as withdrawn, before anybody could send them', async () => {
    const { confirm, append, verify, queue, repair } = await start();
    for (const id of [1, 2, 3]) await confirm(id);
    await append('transaction-1', voided(1));
    await append('transaction-2', cancelled(2));
    const { missing } = await verify();
    const enqueue = queue.enqueue.bind(queue);
    const states: string[] = [];
    queue.enqueue = async (...args) => {
      const claimed = await enqueue(...args);
      for (const { state } of await queue.list({}, { limit: 10 })) states.push(state);
      return claimed;
    };
    await repair(missing);
    expect(states.sort()).toEqual(['pending', 'withdrawn', 'withdrawn']);
  });

  test('stores any number, tells how far it is, and goes on record once, last', async () => {
    const { repair, queue, store, owed, confirm } = await start();
    await confirm(450);
    const progress: number[] = [];
    const enqueue = queue.enqueue.bind(queue);
    queue.enqueue = async (...args) => {
      expect(await store.readStream('operations')).toEqual([]);
      return enqueue(...args);
    };
    await repair(
      range(450).map((n) => owed(n)),
      (stored) => progress.push(stored),
    );
    expect(progress).toEqual([200, 400, 450]);
    expect(await queue.countByState({})).toMatchObject({ pending: 450 });
    expect(await store.readStream('operations')).toMatchObject([
      { type: 'AgreementRepaired', data: { what: 'deliveries', repaired: 450 } },
    ]);
  });

  test('leaves no record where nothing was missing', async () => {
    const { repair, store } = await start();
    await repair([]);
    expect(await store.readStream('operations')).toEqual([]);
  });

  test('knows which of many transactions were voided or cancelled', async () => {
    const { confirm, append, owed, store, account } = await start();
    await account(onKey('KeySwitchedOff'));
    for (const id of [1, 205, 401, 402]) await confirm(id);
    await append('transaction-205', voided(205));
    await append('transaction-401', cancelled(401));
    const among = await withdrawnAmong(
      range(410).map((n) => owed(n)),
      store,
    );
    expect([...among].sort()).toEqual([205, 401]);
  });
});
