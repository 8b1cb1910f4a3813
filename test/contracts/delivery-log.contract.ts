import { describe, expect, test } from 'vitest';
import type {
  ClaimedDelivery,
  Delivery,
  NewDelivery,
  StoredDelivery,
} from '../../src/push/queue/delivery.ts';
import type { DeliveryQueue } from '../../src/push/queue/delivery-queue.ts';
import type { DeliverySummary } from '../../src/push/queue/delivery-reads.ts';
import {
  attemptOf,
  claimOf,
  claimOptions,
  delivered,
  failed,
  held,
  newDelivery,
  retryAt,
  SUCCESS,
} from '../support/deliveries/deliveries.ts';
import { countByState, listed } from '../support/deliveries/listed.ts';
import { openQueue, type QueueUnderTest } from '../support/deliveries/queue-under-test.ts';

const HEALTHY = { failedInARow: 0, failingSinceMs: null, lastAnswers: [] };

/** What is read of the log, and what is kept of it. `open` gives an empty log; the suite closes it. */
export function deliveryLogContract(open: () => Promise<QueueUnderTest>): void {
  const opened = (...enqueued: readonly NewDelivery[]) => openQueue(open, enqueued);
  const one = newDelivery(1);
  const many = (count: number): NewDelivery[] => Array.from({ length: count }, (_, n) => newDelivery(n));

  describe('reading the log', () => {
    /** Twelve deliveries of two keys and accounts; several share a millisecond. */
    const sample = Array.from({ length: 12 }, (_, n) =>
      newDelivery(n, {
        prefix: n % 3 === 0 ? 'bbbbbbbbbb' : 'aaaaaaaaaa',
        accountId: n % 3 === 0 ? 8 : 7,
        createdAtMs: 1_000 + Math.floor(n / 4),
      }),
    );
    const sorted = (deliveries: readonly NewDelivery[]): NewDelivery[] =>
      deliveries.toSorted((a, b) => b.createdAtMs - a.createdAtMs || (b.id > a.id ? 1 : -1));
    const newestFirst = (deliveries: readonly NewDelivery[]): string[] =>
      sorted(deliveries).map(({ id }) => id);

    test('lists newest first, then by id, and continues after any delivery', async () => {
      const { queue } = await opened(...sample);
      const all = newestFirst(sample);
      for (let after = 0; after < all.length; after++) {
        const { deliveries, next } = await queue.page({}, { limit: 3, after: sorted(sample)[after] });
        const ids = deliveries.map(({ id }) => id);
        expect(ids).toEqual(all.slice(after + 1, after + 4));
        expect(next?.id).toBe(after + 4 < all.length ? ids.at(-1) : undefined);
      }
      expect(await queue.page({}, { limit: 0 })).toEqual({ deliveries: [], next: undefined });
    });

    test('continues after a delivery that was removed after its retention meanwhile', async () => {
      const { queue, claim } = await opened(...sample);
      const [first] = await claim(2_000);
      if (first === undefined) throw new Error('nothing was claimed');
      await queue.report([delivered(first, 2_000)]);
      expect(await queue.purge(Number.MAX_SAFE_INTEGER, 10)).toBe(1);
      const all = newestFirst(sample);
      const after = all.slice(all.indexOf(first.id) + 1);
      expect((await queue.page({}, { limit: 20, after: first })).deliveries.map(({ id }) => id)).toEqual(
        after,
      );
    });

    test('lists what a filter selects, in every combination', async () => {
      const { queue, claim } = await opened(...sample);
      const claimed = await claim(2_000);
      await queue.report(
        claimed.flatMap((entry, n) => {
          if (n % 5 === 0) return [held(entry)];
          if (n % 5 === 1) return [failed(entry, 1_000)];
          return n % 5 === 2 ? [delivered(entry, 1_000)] : [];
        }),
      );
      await queue.withdraw([(claimed[3] as ClaimedDelivery).transactionId], 3_000);
      const summaries = await listed(queue);
      const filters = [undefined, 'pending', 'held', 'delivered', 'failed', 'withdrawn'].flatMap((state) =>
        [{}, { prefix: 'aaaaaaaaaa' }, { accountId: 8 }, { transactionId: 4 }].flatMap((whose) =>
          [{}, { sinceMs: 1_001 }, { untilMs: 1_001 }, { sinceMs: 1_001, untilMs: 1_001 }].map((range) => ({
            ...whose,
            ...range,
            ...(state === undefined ? {} : { state: state as 'held' }),
          })),
        ),
      );
      for (const filter of filters) {
        const { sinceMs, untilMs, ...equal } = filter as Record<string, number>;
        const expected = summaries.filter(
          (summary) =>
            Object.entries(equal).every(
              ([name, value]) => summary[name as keyof DeliverySummary] === value,
            ) &&
            summary.createdAtMs >= (sinceMs ?? 0) &&
            summary.createdAtMs <= (untilMs ?? Infinity),
        );
        expect(await listed(queue, filter), JSON.stringify(filter)).toEqual(expected);
      }
    });

    test('shows summaries without record and attempts', async () => {
      const { queue } = await opened(one);
      const { record: _, attempts: __, ...summary } = (await queue.find(one.id)) ?? {};
      expect(await listed(queue)).toEqual([summary]);
    });

    test('finds the deliveries of any transactions, and walks the transactions that have some', async () => {
      const of = (n: number, transactionId: number) => newDelivery(n, { transactionId });
      const sample = [of(1, 5), of(2, 9), of(3, 5), of(4, 70_000_000_000), of(5, 2)];
      const { queue, claim } = await opened(...sample);
      await queue.report((await claim(1_000)).slice(1).map(held));
      const found = await queue.ofTransactions([9, 5, 404]);
      const summaries = await listed(queue);
      expect(found.toSorted((a, b) => (a.id < b.id ? -1 : 1))).toEqual(
        summaries
          .filter(({ transactionId }) => transactionId === 5 || transactionId === 9)
          .map(({ id, prefix, accountId, transactionId, state, cycle, recordedAtMs }) => ({
            ...{ id, prefix, accountId, transactionId, state, cycle, recordedAtMs },
          }))
          .toSorted((a, b) => (a.id < b.id ? -1 : 1)),
      );
      expect(await queue.ofTransactions([])).toEqual([]);
      expect(await queue.transactionsAfter(-1, 0)).toEqual([]);
      for (const limit of [1, 2, 3, 100]) {
        const walked: number[] = [];
        for (let page = await queue.transactionsAfter(-1, limit); page.length > 0; ) {
          expect(page.length).toBeLessThanOrEqual(limit);
          for (const id of page) walked.push(id);
          page = await queue.transactionsAfter(walked.at(-1) ?? 0, limit);
        }
        expect(walked).toEqual([2, 5, 9, 70_000_000_000]);
      }
    });

    test('gives results that can be changed without changing the log', async () => {
      const { queue, claimOne } = await opened(one);
      const claimed = await claimOne(1_000);
      const healths = await queue.report([failed(claimed, 1_000)]);
      const before = await queue.find(one.id);
      Object.assign(claimed.record, { head: 'changed' });
      for (const health of healths.values()) (health.lastAnswers as string[]).push('changed');
      ((await queue.health('unknown')).lastAnswers as string[]).push('changed');
      Object.assign((await queue.find(one.id)) ?? {}, { state: 'changed' });
      expect(await queue.find(one.id)).toEqual(before);
      expect((await queue.health(one.prefix)).lastAnswers).toEqual(['503']);
      expect((await queue.health('unknown')).lastAnswers).toEqual([]);
    });
  });

  describe('a purge', () => {
    test('removes what ended before a time, oldest first and at most its limit, and never a live one', async () => {
      const { queue, claim } = await opened(...many(6));
      const claimed = (await claim(1_000)) as ClaimedDelivery[];
      const [a, b, c, d] = claimed as [ClaimedDelivery, ClaimedDelivery, ClaimedDelivery, ClaimedDelivery];
      await queue.report([delivered(b, 2_000), failed(a, 1_000), delivered(c, 3_000), held(d)]);
      expect(await queue.purge(3_250, 0)).toBe(0);
      expect(await queue.purge(3_250, 1)).toBe(1);
      expect(await queue.find(a.id)).toBeUndefined();
      expect(await queue.purge(3_250, 10)).toBe(1);
      expect(await queue.find(b.id)).toBeUndefined();
      expect(await queue.purge(3_250, 10)).toBe(0);
      expect(await queue.purge(Number.MAX_SAFE_INTEGER, 10)).toBe(1);
      expect(await countByState(queue)).toEqual({
        pending: 2,
        held: 1,
        delivered: 0,
        failed: 0,
        withdrawn: 0,
      });
    });

    test('leaves one alone that had ended and was made due again', async () => {
      const { queue, claimOne, stateOf } = await opened(one);
      await queue.report([failed(await claimOne(1_000), 1_000)]);
      await queue.redeliver(one.id, { force: false, dueAtMs: 5_000 });
      expect(await queue.purge(Number.MAX_SAFE_INTEGER, 10)).toBe(0);
      expect(await stateOf(one)).toBe('pending');
    });

    test('also removes the attempts, and keeps withdrawals', async () => {
      const { queue, claimOne, stateOf } = await opened(one);
      await queue.report([failed(await claimOne(1_000), 1_000)]);
      await queue.withdraw([1], 2_000);
      await queue.purge(9_000, 10);
      expect(await queue.purgeWithdrawals(2_000, 10)).toBe(0);
      await queue.enqueue([one]);
      expect(await queue.find(one.id)).toMatchObject({ state: 'withdrawn', attempts: [] });
      expect(await stateOf(one)).toBe('withdrawn');
    });
  });

  test('withdrawals made before a time are forgotten, oldest first and at most as many as asked for', async () => {
    const { queue, stateOf } = await opened();
    for (const [id, atMs] of [
      [1, 1_000],
      [2, 2_000],
      [3, 3_000],
      [1, 2_500], // again
    ] as const) {
      await queue.withdraw([id], atMs);
    }
    await queue.erase(4, 1_500);
    expect(await queue.purgeWithdrawals(3_000, 0)).toBe(0);
    expect(await queue.purgeWithdrawals(3_000, 2)).toBe(2);
    const all = [1, 2, 3, 4].map((n) => newDelivery(n));
    await queue.enqueue(all);
    const states = await Promise.all(all.map(stateOf));
    expect(states).toEqual(['withdrawn', 'pending', 'withdrawn', 'pending']);
    expect(await queue.purgeWithdrawals(3_000, 2)).toBe(1);
    expect(await queue.purgeWithdrawals(3_000, 2)).toBe(0);
  });

  describe('of a delivery that is redelivered again and again', () => {
    const force = { force: true, dueAtMs: 1_000 };
    const places = (delivery: Delivery | undefined) =>
      delivery?.attempts.map(({ cycle, number }) => `${cycle}.${number}`);
    const cycles = (from: number, to: number) =>
      Array.from({ length: to - from + 1 }, (_, n) => `${from + n}.1`);

    test('the newest 50 attempts are kept, whole, and those of its cycle are counted and among them', async () => {
      const other = newDelivery(2);
      const { queue, claim, claimOne } = await opened(one, other);
      await queue.report((await claim(1_000)).map((entry) => delivered(entry, 1)));
      for (let cycle = 2; cycle <= 50; cycle++) {
        await queue.redeliver(one.id, force);
        await queue.report([delivered(await claimOne(1_000), cycle)]);
      }
      expect(places(await queue.find(one.id))).toEqual(cycles(1, 50));
      await queue.redeliver(one.id, force);
      const last = await claimOne(1_000);
      await queue.report([delivered(last, 51)]);
      const found = await queue.find(one.id);
      expect(places(found)).toEqual(cycles(2, 51));
      expect(found?.attempts.at(-1)).toEqual(attemptOf(last, 51, SUCCESS));
      await queue.redeliver(one.id, force);
      await queue.report([retryAt(await claimOne(1_000), 52, 1_000)]);
      await queue.report([retryAt(await claimOne(1_000), 53, 1_000)]);
      expect(await queue.find(one.id)).toMatchObject({ cycle: 52, attemptsInCycle: 2 });
      const failure = await claimOne(1_000);
      expect(failure.attemptNumber).toBe(3);
      // A report that counts is recognised by its attempt, which must not be dropped.
      const unknown = { ...failure, id: newDelivery(3).id };
      const moved = await queue.report([failed(unknown, 54), failed(failure, 54)]);
      expect(moved.get(one.prefix)).toMatchObject({ failedInARow: 1 });
      expect(places(await queue.find(one.id))).toEqual([...cycles(5, 51), '52.1', '52.2', '52.3']);
      expect(places(await queue.find(other.id))).toEqual(['1.1']);
    });
  });

  test('a log keeps its name when it is opened again, and another log has another name', async () => {
    const { queue, second } = await opened();
    const stranger = await opened();
    expect(await second().logId()).toEqual(await queue.logId());
    expect((await stranger.queue.logId()).id).not.toBe((await queue.logId()).id);
  });

  test('a listener is notified of new work by this process and by another, not of what was handed out', async () => {
    const { queue, second, claim, clock } = await opened();
    const nowMs = clock.now(); // a poll for other processes' work finds nothing due by it
    const other = second();
    let notifications = 0;
    let notified = Promise.withResolvers<void>();
    const listener = {
      notify: () => {
        notifications++;
        notified.resolve();
      },
    };
    queue.changed.add(listener);
    const claimed = await queue.enqueue([{ ...one, createdAtMs: nowMs }], claimOptions(nowMs));
    await queue.report([failed(claimed[0] as ClaimedDelivery, nowMs)]);
    expect(notifications).toBe(0);
    await queue.redeliver(one.id, { force: false, dueAtMs: nowMs + 1_000 });
    expect(notifications).toBe(1);
    await queue.report((await claim(nowMs + 1_000)).map((entry) => retryAt(entry, nowMs, nowMs + 2_000)));
    expect(notifications).toBe(2);
    notified = Promise.withResolvers<void>();
    await other.enqueue([newDelivery(2, { createdAtMs: nowMs })]);
    await notified.promise;
    queue.changed.remove(listener);
    const before = notifications;
    await queue.enqueue([newDelivery(3, { createdAtMs: nowMs })]);
    expect(notifications).toBe(before);
  });

  test('a listener is notified of what is stored unclaimed, given back or resumed, not of what is held', async () => {
    const { queue, claim, clock } = await opened();
    let notifications = 0;
    queue.changed.add({ notify: () => void notifications++ });
    const notificationsOf = async (work: Promise<unknown>): Promise<number> => {
      const before = notifications;
      await work;
      return notifications - before;
    };
    // Nothing is due by the queue's own clock: no poll for other processes' work notifies.
    const nowMs = clock.now() + 60_000;
    expect(await notificationsOf(queue.enqueue([{ ...one, createdAtMs: nowMs }]))).toBe(1);
    const [first] = (await claim(nowMs)) as [ClaimedDelivery];
    expect(await notificationsOf(queue.report([held(first)]))).toBe(0);
    expect(await notificationsOf(queue.resume(7, nowMs))).toBe(1);
    expect(await notificationsOf(queue.resume(7, nowMs))).toBe(0);
    const [given] = (await claim(nowMs)) as [ClaimedDelivery];
    expect(await notificationsOf(queue.report([{ kind: 'released', ...claimOf(given) }]))).toBeGreaterThan(0);
  });

  test('a closed log rejects every call', async () => {
    const { queue } = await opened(one);
    const [stored] = (await queue.storedAfter(-1)) as [StoredDelivery];
    await queue.close();
    const calls: ((closed: DeliveryQueue) => Promise<unknown>)[] = [
      (closed) => closed.logId(),
      (closed) => closed.enqueue([newDelivery(2)]),
      (closed) => closed.claim(claimOptions(1_000)),
      (closed) => closed.report([{ kind: 'held', ...one, leaseToken: 'x' }]),
      (closed) => closed.resume(7, 1_000),
      (closed) => closed.endLane(one.prefix, 'x', 1_000),
      (closed) => closed.withdraw([1], 1_000),
      (closed) => closed.erase(1, 1_000),
      (closed) => closed.redeliver(one.id, { force: true, dueAtMs: 1_000 }),
      (closed) => closed.nextDueAtMs(),
      (closed) => closed.health(one.prefix),
      (closed) => closed.resetHealth(one.prefix, 1_000),
      (closed) => closed.heldAccounts(),
      (closed) => closed.find(one.id),
      (closed) => closed.page({}, { limit: 1 }),
      (closed) => closed.page({}, { limit: 1, maxRead: 1 }),
      (closed) => closed.backlog(1),
      (closed) => closed.backlog(1, one.prefix),
      (closed) => closed.failingLanes(1),
      (closed) => closed.attempts(one.prefix, { deliveries: 1, maxRead: 1 }),
      (closed) => closed.storedAfter(-1),
      (closed) => closed.withdrawnAfter(0),
      (closed) => closed.store({ name: { id: 'x', startedAtMs: 1 } }),
      (closed) => closed.store({ deliveries: [stored] }),
      (closed) => closed.store({ withdrawn: [1] }),
      (closed) => closed.store({ streaks: [{ prefix: 'x', ...HEALTHY }] }),
      (closed) => closed.purgeWithdrawals(1_000, 1),
      (closed) => closed.ofTransactions([1]),
      (closed) => closed.transactionsAfter(0, 1),
      (closed) => closed.purge(1_000, 1),
    ];
    for (const call of calls) await expect(call(queue)).rejects.toMatchObject({ code: 'STORE_CLOSED' });
  });

  test('a queue that is closed notifies those who wait for work, and takes no further ones', async () => {
    const { queue } = await openQueue(open, []);
    let notified = 0;
    queue.changed.add({ notify: () => void notified++ });
    await queue.close();
    expect(notified).toBe(1);
    expect(() => queue.changed.add({ notify: () => undefined })).toThrow(/closed/);
  });
}
