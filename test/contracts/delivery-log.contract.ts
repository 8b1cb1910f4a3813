import { describe, expect, test } from 'vitest';
import { DAY_MS } from '../../src/domain/values/date-time.ts';
import { owedOf } from '../../src/push/log/tables.ts';
import type {
  ClaimedDelivery,
  Delivery,
  DeliverySummary,
  NewDelivery,
} from '../../src/push/queue/delivery.ts';
import type { DeliveryFilter, DeliveryQueue } from '../../src/push/queue/delivery-queue.ts';
import {
  attemptOf,
  claimFrom,
  claimOptions,
  delivered,
  failed,
  newDelivery,
  retryAt,
  SUCCESS,
} from '../support/deliveries/deliveries.ts';
import { listed } from '../support/deliveries/listed.ts';
import { openQueue, type QueueUnderTest } from '../support/deliveries/queue-under-test.ts';

/** The contract of reads and retention of the delivery log. `open` returns an empty log, which the suite closes. */
export function deliveryLogContract(open: () => Promise<QueueUnderTest>): void {
  const opened = (...enqueued: readonly NewDelivery[]) => openQueue(open, enqueued);
  const one = newDelivery(1);

  describe('reading the log', () => {
    /** Twelve deliveries of two keys and accounts. Several share a millisecond. */
    const sample = Array.from({ length: 12 }, (_, n) =>
      newDelivery(n, {
        prefix: n % 3 === 0 ? 'bbbbbbbbbb' : 'aaaaaaaaaa',
        accountId: n % 3 === 0 ? 8 : 7,
        createdAtMs: 1_000 + Math.floor(n / 4),
      }),
    );
    const sorted = (deliveries: readonly NewDelivery[]): NewDelivery[] =>
      deliveries.toSorted((a, b) => b.createdAtMs - a.createdAtMs || (owedOf(b) > owedOf(a) ? 1 : -1));
    const newestFirst = (deliveries: readonly NewDelivery[]): string[] =>
      sorted(deliveries).map(({ id }) => id);

    test('lists newest first, and continues after any delivery', async () => {
      const { queue } = await opened(...sample);
      const all = newestFirst(sample);
      for (let after = 0; after < all.length; after++) {
        const { deliveries, next } = await queue.page({}, { limit: 3, after: sorted(sample)[after] });
        const ids = deliveries.map(({ id }) => id);
        expect(ids).toEqual(all.slice(after + 1, after + 4));
        expect(next).toEqual(after + 4 < all.length ? deliveries.at(-1) : undefined);
      }
      expect(await queue.page({}, { limit: 0 })).toEqual({ deliveries: [], next: undefined });
    });

    test('ends for what has no deliveries, whatever it is continued after', async () => {
      const { queue } = await opened(...sample);
      const after = sorted(sample)[0];
      for (const filter of [{ accountId: 9 }, { prefix: 'cccccccccc' }, { transactionIds: [404] }])
        for (const limits of [{ limit: 3 }, { limit: 3, after }, { limit: 3, after, maxRead: 10 }])
          expect(await queue.page(filter, limits)).toEqual({ deliveries: [], next: undefined });
    });

    test('continues after a delivery that was removed after its retention meanwhile', async () => {
      const { queue, claim } = await opened(...sample);
      const [first] = await claim(2_000);
      if (first === undefined) throw new Error('nothing was claimed');
      await queue.report([delivered(first, 2_000)]);
      expect(await queue.change({ kind: 'purge', retentionMs: 0, limit: 10 }, 8e15)).toBe(1);
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
          if (n % 5 === 1) return [failed(entry, 1_000)];
          return n % 5 === 2 ? [delivered(entry, 1_000)] : [];
        }),
      );
      await queue.change(
        { kind: 'withdraw', transactionIds: [(claimed[3] as ClaimedDelivery).transactionId] },
        3_000,
      );
      const summaries = await listed(queue);
      const filters = [undefined, 'pending', 'delivered', 'failed', 'withdrawn'].flatMap((state) =>
        [{}, { prefix: 'aaaaaaaaaa' }, { accountId: 8 }, { transactionIds: [4] }].flatMap((whose) =>
          [{}, { sinceMs: 1_001 }, { untilMs: 1_001 }, { sinceMs: 1_001, untilMs: 1_001 }].map((range) => ({
            ...whose,
            ...range,
            ...(state === undefined ? {} : { state: state as 'pending' }),
          })),
        ),
      );
      for (const filter of filters) {
        const { sinceMs, untilMs, transactionIds, ...equal } = filter as DeliveryFilter;
        const expected = summaries.filter(
          (summary) =>
            transactionIds?.includes(summary.transactionId) !== false &&
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

    test('finds the deliveries of any transactions, gives them whole, and walks the transactions that have some', async () => {
      const of = (n: number, transactionId: number) => newDelivery(n, { transactionId });
      const sample = [of(1, 5), of(2, 9), of(3, 5), of(4, 70_000_000_000), of(5, 2)];
      const { queue, claim } = await opened(...sample);
      await queue.report((await claim(1_000)).slice(1).map((entry) => delivered(entry, 1_000)));
      const found = await listed(queue, { transactionIds: [9, 5, 404] });
      const summaries = await listed(queue);
      const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1);
      const wanted = summaries.filter(({ transactionId }) => transactionId === 5 || transactionId === 9);
      expect(found.toSorted(byId)).toEqual(wanted.toSorted(byId));
      expect(await listed(queue, { transactionIds: [] })).toEqual([]);
      const idsOf = async (transactionIds: readonly number[]) =>
        (await listed(queue, { transactionIds })).map((each) => each.transactionId);
      expect((await idsOf([2, 3, 4, 9])).toSorted()).toEqual([2, 9]); // nearly all in between, but not 5
      expect(await idsOf([...Array.from({ length: 600 }, (_, n) => 1_000 + n), 9])).toEqual([9]);
      const whole = await queue.get([...found, newDelivery(404)]);
      expect(whole).toEqual(await Promise.all(found.map(({ id }) => queue.find(id))));
      expect(await queue.transactionsAfter(-1, 0)).toEqual([]);
      for (const limit of [1, 2, 3, 100]) {
        const walked: number[] = [];
        for (let part = await queue.transactionsAfter(-1, limit); part.length > 0; ) {
          expect(part.length).toBeLessThanOrEqual(limit);
          for (const id of part) walked.push(id);
          part = await queue.transactionsAfter(walked.at(-1) ?? 0, limit);
        }
        expect(walked).toEqual([2, 5, 9, 70_000_000_000]);
      }
    });

    test('gives results that can be changed without changing the log', async () => {
      const { queue, claimOne } = await opened(one);
      const claimed = await claimOne(1_000);
      const healths = await queue.report([failed(claimed, 1_000)]);
      const before = await queue.find(one.id);
      Object.assign(claimed, { record: 'changed' });
      for (const health of healths.values()) (health.lastAnswers as string[]).push('changed');
      ((await queue.health('unknown')).lastAnswers as string[]).push('changed');
      Object.assign((await queue.find(one.id)) ?? {}, { state: 'changed' });
      expect(await queue.find(one.id)).toEqual(before);
      expect((await queue.health(one.prefix)).lastAnswers).toEqual(['503']);
      expect((await queue.health('unknown')).lastAnswers).toEqual([]);
    });
  });

  describe('a purge', () => {
    test('also removes the attempts, and keeps withdrawals', async () => {
      const { queue, claimOne, stateOf } = await opened(one);
      await queue.report([failed(await claimOne(1_000), 1_000)]);
      await queue.change({ kind: 'withdraw', transactionIds: [1] }, 2_000);
      expect(await queue.change({ kind: 'purge', retentionMs: 0, limit: 10 }, 9_000)).toBe(1);
      await queue.enqueue([one]);
      expect(await queue.find(one.id)).toMatchObject({ state: 'withdrawn', attempts: [] });
      expect(await stateOf(one)).toBe('withdrawn');
    });
  });

  test('withdrawals made a day before a time are forgotten, oldest first and at most as many as asked for', async () => {
    const { queue, stateOf } = await opened();
    for (const [id, atMs] of [
      [1, 1_000],
      [2, 2_000],
      [3, 3_000],
      [1, 2_500], // again
    ] as const) {
      await queue.change({ kind: 'withdraw', transactionIds: [id] }, atMs);
    }
    await queue.change({ kind: 'erase', transactionId: 4 }, 1_500);
    const purge = (limit: number) =>
      queue.change({ kind: 'purge', retentionMs: DAY_MS, limit }, 2 * DAY_MS + 3_000);
    expect(await purge(0)).toBe(0);
    expect(await purge(2)).toBe(2);
    const all = [1, 2, 3, 4].map((n) => newDelivery(n, { createdAtMs: DAY_MS * 2 }));
    await queue.enqueue(all);
    const states = await Promise.all(all.map(stateOf));
    expect(states).toEqual(['withdrawn', 'pending', 'withdrawn', 'pending']);
    expect(await purge(2)).toBe(1);
    expect(await purge(2)).toBe(0);
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
        await queue.redeliver(one, force);
        await queue.report([delivered(await claimOne(1_000), cycle)]);
      }
      expect(places(await queue.find(one.id))).toEqual(cycles(1, 50));
      await queue.redeliver(one, force);
      const last = await claimOne(1_000);
      await queue.report([delivered(last, 51)]);
      const found = await queue.find(one.id);
      expect(places(found)).toEqual(cycles(2, 51));
      expect(found?.attempts.at(-1)).toEqual(attemptOf(last, 51, SUCCESS));
      await queue.redeliver(one, force);
      await queue.report([retryAt(await claimOne(1_000), 52, 1_000)]);
      await queue.report([retryAt(await claimOne(1_000), 53, 1_000)]);
      expect(await queue.find(one.id)).toMatchObject({ cycle: 52, attemptsInCycle: 2 });
      const failure = await claimOne(1_000);
      expect(failure.attemptNumber).toBe(3);
      // A valid report is recognised by its attempt, which must not be dropped.
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

  test('a closed log rejects every call', async () => {
    const { queue } = await opened(one);
    await queue.close();
    const calls: ((closed: DeliveryQueue) => Promise<unknown>)[] = [
      (closed) => closed.logId(),
      (closed) => closed.enqueue([newDelivery(2)]),
      (closed) => claimFrom(closed, claimOptions(1_000)),
      (closed) => closed.report([{ kind: 'released', ...one, leaseToken: 'x' }]),
      (closed) => closed.change({ kind: 'end lane', prefix: one.prefix, reason: 'x' }, 1_000),
      (closed) => closed.change({ kind: 'enabled', prefix: one.prefix, atMs: 1_000 }, 1_000),
      (closed) => closed.change({ kind: 'withdraw', transactionIds: [1] }, 1_000),
      (closed) => closed.change({ kind: 'erase', transactionId: 1 }, 1_000),
      (closed) => closed.change({ kind: 'redact', transactionId: 1 }, 1_000),
      (closed) => closed.redeliver(one, { force: true, dueAtMs: 1_000 }),
      (closed) => closed.pendingLanes(),
      (closed) => closed.countIn([one.prefix], { nowMs: 1_000, limit: 1 }),
      (closed) => closed.change({ kind: 'purge', retentionMs: 1, limit: 1 }, 1_000),
      (closed) => closed.find(one.id),
      (closed) => closed.get([one]),
      (closed) => closed.page({}, { limit: 1 }),
      (closed) => closed.page({}, { limit: 1, maxRead: 1 }),
      (closed) => closed.page({ transactionIds: [1] }, { limit: 1 }),
      (closed) => closed.transactionsAfter(0, 1),
      (closed) => closed.health(one.prefix),
      (closed) => closed.failingLanes(1),
      (closed) => closed.dueLanes({ nowMs: 1_000, limit: 1 }),
      (closed) => closed.askedToWaitUntil(one.prefix, 1_000),
      (closed) => closed.backlog({ nowMs: 1_000, limit: 1 }),
      (closed) => closed.backlog({ nowMs: 1_000, limit: 1, prefix: one.prefix }),
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
