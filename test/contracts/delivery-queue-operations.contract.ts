import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { ClaimedDelivery, NewDelivery } from '../../src/push/queue/delivery.ts';
import {
  claimOptions,
  delivered,
  failed,
  held,
  newDelivery,
  retryAt,
} from '../support/deliveries/deliveries.ts';
import { countByState } from '../support/deliveries/listed.ts';
import { openQueue, type QueueUnderTest } from '../support/deliveries/queue-under-test.ts';

/** What becomes of deliveries other than by attempts. `open` gives an empty log; the suite closes it. */
export function deliveryQueueOperationsContract(open: () => Promise<QueueUnderTest>): void {
  const opened = (...enqueued: readonly NewDelivery[]) => openQueue(open, enqueued);
  const one = newDelivery(1);
  const many = (count: number, overrides: Partial<NewDelivery> = {}): NewDelivery[] =>
    Array.from({ length: count }, (_, n) => newDelivery(n, overrides));

  describe('a held delivery', () => {
    test('is not due until its account resumes, and then has the attempts it had left', async () => {
      const { queue, claim, claimOne } = await opened(one);
      await queue.report([retryAt(await claimOne(1_000), 1_000, 2_000)]);
      await queue.report([held(await claimOne(2_000))]);
      expect(await queue.find(one.id)).toMatchObject({ state: 'held', dueAtMs: null, attemptsInCycle: 1 });
      expect(await claim(99_000)).toEqual([]);
      expect(await queue.nextDueAtMs()).toBeUndefined();
      expect(await queue.heldAccounts()).toEqual([7]);
      expect(await queue.resume(8, 50_000)).toBe(0);
      expect(await queue.resume(7, 50_000)).toBe(1);
      expect(await queue.heldAccounts()).toEqual([]);
      expect(await claim(49_999)).toEqual([]);
      expect(await claimOne(50_000)).toMatchObject({ cycle: 1, attemptNumber: 2 });
    });

    test('ends the time of its lane’s failure streak when it resumes, not the count, and no other lane’s', async () => {
      const [held1, other] = [newDelivery(2), newDelivery(3, { prefix: 'bbbbbbbbbb' })];
      const { queue, claim } = await opened(one, held1, other);
      const [a, b, c] = (await claim(1_000)) as [ClaimedDelivery, ClaimedDelivery, ClaimedDelivery];
      await queue.report([failed(a, 1_000), held(b), failed(c, 1_000)]);
      await queue.resume(7, 90_000);
      const run = { failedInARow: 1, lastAnswers: ['503'] };
      expect(await queue.health(a.prefix)).toEqual({ ...run, failingSinceMs: null });
      expect(await queue.health(c.prefix)).toEqual({ ...run, failingSinceMs: 1_250 });
      await queue.report([failed((await claim(90_000))[0] as ClaimedDelivery, 90_000)]);
      expect(await queue.health(a.prefix)).toMatchObject({ failedInARow: 2, failingSinceMs: 90_250 });
    });

    test('resumes with all others of its account, more than one batch of them', async () => {
      const { queue } = await opened();
      const all = [...many(1_200), newDelivery(1, { accountId: 8, prefix: 'cccccccccc' })];
      const claimed = await queue.enqueue(all, claimOptions(1_000, { laneCapacity: () => 2_000 }));
      await queue.report(claimed.map(held));
      expect(await queue.heldAccounts()).toEqual([7, 8]);
      expect(await queue.resume(7, 2_000)).toBe(1_200);
      expect(await countByState(queue)).toMatchObject({ pending: 1_200, held: 1 });
    });

    test('is resumed once by each call, also where it is held again before the call is over', async () => {
      const { queue, claim } = await opened();
      const wide = { limit: 2_000, laneCapacity: () => 2_000 };
      const claimed = await queue.enqueue(many(1_200), claimOptions(1_000, wide));
      await queue.report(claimed.map(held));
      let over = false;
      const resuming = queue.resume(7, 2_000).finally(() => {
        over = true;
      });
      while (!over) {
        await queue.report((await claim(2_000, wide)).map(held));
        await nextTurn();
      }
      expect(await resuming).toBe(1_200);
    });
  });

  describe('ending a lane', () => {
    test('fails its pending, claimed and held deliveries with the reason, outside the failure streak', async () => {
      const { queue, claim, stateOf } = await opened(...many(3), newDelivery(1, { prefix: 'bbbbbbbbbb' }));
      const [a, b] = (await claim(1_000)) as [ClaimedDelivery, ClaimedDelivery];
      await queue.report([held(a)]);
      expect(await queue.endLane(one.prefix, 'the key is off', 2_000)).toBe(3);
      expect(await queue.find(b.id)).toMatchObject({
        state: 'failed',
        reason: 'the key is off',
        attempts: [],
      });
      expect(await stateOf(a)).toBe('failed');
      expect(await countByState(queue, { prefix: 'bbbbbbbbbb' })).toMatchObject({ pending: 1, failed: 0 });
      expect((await queue.health(one.prefix)).failedInARow).toBe(0);
      expect(await queue.endLane(one.prefix, 'again', 3_000)).toBe(0);
    });

    test('leaves those that were not redelivered where only redelivered ones are to end', async () => {
      const { queue, claim, stateOf } = await opened(...many(3));
      const [a, b, c] = (await claim(1_000)) as [ClaimedDelivery, ClaimedDelivery, ClaimedDelivery];
      await queue.report([failed(a, 1_000), failed(b, 1_000)]);
      for (const { id } of [a, b]) await queue.redeliver(id, { force: false, dueAtMs: 2_000 });
      await queue.report([held((await claim(2_000))[0] as ClaimedDelivery)]);
      expect(await queue.endLane(one.prefix, 'cancelled', 3_000, { redelivered: true })).toBe(2);
      expect(await Promise.all([a, b, c].map(stateOf))).toEqual(['failed', 'failed', 'pending']);
      expect(await queue.find(a.id)).toMatchObject({ reason: 'cancelled', cycle: 2 });
      expect(await queue.endLane(one.prefix, 'cancelled', 3_000, { redelivered: true })).toBe(0);
    });

    test('leaves those of later events, and those that were redelivered since, where these are not to end', async () => {
      const { queue, claim, stateOf } = await opened(
        ...many(3).map((each, n) => ({ ...each, position: n + 5 })),
      );
      const inOrder = (await claim(1_000)).toSorted((x, y) => x.position - y.position);
      const [a, b, c] = inOrder as [ClaimedDelivery, ClaimedDelivery, ClaimedDelivery];
      await queue.report([failed(a, 1_000), held(b), held(c)]);
      await queue.redeliver(a.id, { force: false, dueAtMs: 2_000 });
      expect(await queue.endLane(one.prefix, 'off', 3_000, { before: c.position, redelivered: false })).toBe(
        1,
      );
      expect(await Promise.all([a, b, c].map(stateOf))).toEqual(['pending', 'failed', 'held']);
      expect(await queue.endLane(one.prefix, 'off', 3_000, { before: c.position })).toBe(1);
      expect(await Promise.all([a, b, c].map(stateOf))).toEqual(['failed', 'failed', 'held']);
    });

    test('withdraws transactions together as one after the other', async () => {
      const { queue, stateOf } = await opened(newDelivery(1), newDelivery(2), newDelivery(3));
      await queue.withdraw([1, 3, 4, 3], 2_000);
      expect(await countByState(queue)).toMatchObject({ withdrawn: 2, pending: 1 });
      expect(await stateOf(newDelivery(2))).toBe('pending');
      await queue.enqueue([newDelivery(4)]);
      expect(await stateOf(newDelivery(4))).toBe('withdrawn');
    });

    test('ends more than one batch', async () => {
      const { queue } = await opened(...many(1_100));
      expect(await queue.endLane(one.prefix, 'removed', 2_000)).toBe(1_100);
      expect(await queue.nextDueAtMs()).toBeUndefined();
    });
  });

  describe('a redaction', () => {
    test('takes the driver out of every record of a transaction, and what receivers said, and leaves the rest', async () => {
      const record = { ...one.record, mobileNumber: '"+15550100"' };
      const [first, second] = [newDelivery(1, { record }), newDelivery(1, { prefix: 'bbbbbbbbbb' })];
      const { queue, claim, stateOf } = await opened(first, second, newDelivery(2));
      const claims = (await claim(1_000)) as ClaimedDelivery[];
      const claimed = claims.find(({ transactionId }) => transactionId === 1) as ClaimedDelivery;
      const said = { status: 503, headers: { 'x-for': 'x' }, body: 'no x' };
      const outcome = { ok: false, kind: 'status', detail: '', answer: said } as const;
      await queue.report([retryAt(claimed, 1_000, 2_000, outcome)]);
      expect(await queue.redact(1)).toBe(2);
      const redacted = { ...one.record, head: '{"id":1,"driver":{"id":1,"name":"REDACTED"' };
      for (const { id } of [first, second])
        expect(await queue.find(id)).toMatchObject({ state: 'pending', record: redacted });
      const [attempt] = (await queue.find(claimed.id))?.attempts ?? [];
      expect(attempt?.outcome.answer).toEqual({ status: 503, headers: {}, body: '' });
      expect((await queue.find(newDelivery(2).id))?.record).toEqual(newDelivery(2).record);
      expect(await queue.redact(1)).toBe(0);
      expect(await queue.redact(99)).toBe(0);
      const due = (await claim(9_000)) as ClaimedDelivery[];
      expect(due.find(({ id }) => id === first.id)?.record).toEqual(redacted);
      expect(await stateOf(first)).toBe('pending');
    });

    test('leaves an erased record empty', async () => {
      const { queue } = await opened(one);
      await queue.erase(1, 2_000);
      expect(await queue.redact(1)).toBe(0);
      expect((await queue.find(one.id))?.record.head).toBe('');
    });
  });

  describe('a withdrawal', () => {
    test('is final in either order of arrival', async () => {
      const { queue, claim, stateOf } = await opened(one);
      await queue.withdraw([1], 2_000);
      await queue.withdraw([2], 2_000);
      const late = newDelivery(2);
      expect(await queue.enqueue([late], claimOptions(3_000))).toEqual([]);
      expect([await stateOf(one), await stateOf(late)]).toEqual(['withdrawn', 'withdrawn']);
      expect((await queue.find(late.id))?.reason).toBe((await queue.find(one.id))?.reason);
      expect(await claim(9_000_000)).toEqual([]);
    });

    test('by an erasure also empties the records, of what was delivered too', async () => {
      const { queue, claim, stateOf } = await opened(one);
      const [claimed] = (await claim(1_000)) as [ClaimedDelivery];
      await queue.report([delivered(claimed, 1_000)]);
      await queue.erase(1, 2_000);
      const erased = { head: '', mobileNumber: null, fees: '', pump: null, odometer: null };
      expect((await queue.find(one.id))?.record).toEqual(erased);
      expect(await stateOf(one)).toBe('delivered');
      expect(await queue.redeliver(one.id, { force: true, dueAtMs: 5_000 })).toBe('withdrawn');
    });

    test('by an erasure leaves nothing of what the receiver said, before it or after, nor of a late record', async () => {
      const { queue, claim } = await opened(one, newDelivery(1, { prefix: 'bbbbbbbbbb' }));
      const [a, b] = (await claim(1_000)) as [ClaimedDelivery, ClaimedDelivery];
      const said = { status: 503, headers: { 'x-for': 'Sam' }, body: 'no Sam' };
      const outcome = { ok: false, kind: 'status', detail: '', answer: said } as const;
      await queue.report([retryAt(a, 1_000, 2_000, outcome)]);
      const [again] = (await claim(2_000)) as [ClaimedDelivery];
      await queue.erase(1, 2_100);
      await queue.report([retryAt(again, 2_000, 3_000, outcome)]);
      await queue.report([delivered(b, 1_000, { ok: true, answer: { ...said, status: 200 } })]);
      const late = newDelivery(1, { prefix: 'cccccccccc' });
      await queue.enqueue([late]);
      const all = await Promise.all([a, b, late].map(({ id }) => queue.find(id)));
      expect(all.map((found) => found?.state)).toEqual(['withdrawn', 'delivered', 'withdrawn']);
      const answers = all.flatMap((found) => found?.attempts.map((attempt) => attempt.outcome.answer));
      const nothing = { headers: {}, body: '' };
      expect(answers).toEqual([
        { status: 503, ...nothing },
        { status: 503, ...nothing },
        { status: 200, ...nothing },
      ]);
      for (const found of all)
        expect(found?.record).toEqual({ head: '', mobileNumber: null, fees: '', pump: null, odometer: null });
    });

    test('outlives a retry, a hold, a resume and a forced redelivery', async () => {
      const two = newDelivery(2);
      const { queue, claim, stateOf } = await opened(one, two);
      const [a, b] = (await claim(1_000)) as [ClaimedDelivery, ClaimedDelivery];
      await queue.report([held(a)]);
      await queue.withdraw([1], 2_000);
      await queue.withdraw([2], 2_000);
      await queue.report([retryAt(b, 1_000, 3_000), held(b)]);
      expect(await queue.resume(7, 4_000)).toBe(0);
      expect(await queue.endLane(a.prefix, 'removed', 4_000)).toBe(0);
      for (const { id } of [a, b]) {
        expect(await queue.redeliver(id, { force: true, dueAtMs: 5_000 })).toBe('withdrawn');
        expect(await stateOf({ id })).toBe('withdrawn');
      }
    });

    test('leaves what was delivered or failed as it is, and refuses to send it again', async () => {
      const { queue, claim, stateOf } = await opened(one, newDelivery(2));
      const [a, b] = (await claim(1_000)) as [ClaimedDelivery, ClaimedDelivery];
      await queue.report([delivered(a, 1_000), failed(b, 1_000)]);
      await queue.withdraw([1], 2_000);
      await queue.withdraw([2], 2_000);
      expect([await stateOf(a), await stateOf(b)]).toEqual(['delivered', 'failed']);
      expect(await queue.redeliver(a.id, { force: true, dueAtMs: 3_000 })).toBe('withdrawn');
      expect(await queue.redeliver(b.id, { force: true, dueAtMs: 3_000 })).toBe('withdrawn');
      expect([await stateOf(a), await stateOf(b)]).toEqual(['delivered', 'failed']);
    });
  });

  describe('a redelivery', () => {
    test('of a failed one starts a new cycle, numbered from 1, with the same id and record', async () => {
      const { queue, claim, claimOne } = await opened(one);
      await queue.report([failed(await claimOne(1_000), 1_000)]);
      expect(await queue.redeliver(one.id, { force: false, dueAtMs: 5_000 })).toBe('due');
      expect(await claim(4_999)).toEqual([]);
      const again = await claimOne(5_000);
      expect(again).toEqual({ ...one, cycle: 2, attemptNumber: 1, leaseToken: expect.any(String) });
      await queue.report([delivered(again, 5_000)]);
      const found = await queue.find(one.id);
      expect(found).toMatchObject({ state: 'delivered', reason: null, cycle: 2, attemptsInCycle: 1 });
      expect(found?.attempts.map(({ cycle, number }) => [cycle, number])).toEqual([
        [1, 1],
        [2, 1],
      ]);
    });

    test('of a delivered one needs force; of one that is under way, held or unknown there is none', async () => {
      const { queue, claimOne } = await opened(one);
      const request = { force: true, dueAtMs: 5_000 };
      expect(await queue.redeliver('unknown', request)).toBe('not known');
      expect(await queue.redeliver(one.id, request)).toBe('pending');
      await queue.report([held(await claimOne(1_000))]);
      expect(await queue.redeliver(one.id, request)).toBe('pending');
      await queue.resume(7, 1_000);
      await queue.report([delivered(await claimOne(1_000), 1_000)]);
      expect(await queue.redeliver(one.id, { force: false, dueAtMs: 5_000 })).toBe('delivered');
      expect(await queue.redeliver(one.id, request)).toBe('due');
    });
  });

  test('the backlog counts what is open and the lanes with a failure streak, each up to the limit', async () => {
    const other = { prefix: 'bbbbbbbbbb', accountId: 8 };
    const { queue, claim } = await opened(...many(6), newDelivery(1, other), newDelivery(2, other));
    expect(await queue.backlog(100)).toEqual({ pending: 8, held: 0, failingLanes: 0, nextDueAtMs: 1_000 });
    const claimed = await claim(1_000, { limit: 8, laneCapacity: () => 8 });
    const [a, b, c, d, e] = claimed.toSorted((x, y) => x.prefix.localeCompare(y.prefix));
    if (!a || !b || !c || !d || !e) throw new Error('five were asked for');
    const last = claimed.find(({ prefix }) => prefix === other.prefix) ?? a;
    await queue.report([failed(a, 1_000), held(b), held(c), held(d), failed(last, 1_000)]);
    expect(await queue.backlog(100)).toMatchObject({ pending: 3, held: 3, failingLanes: 2 });
    await queue.report([delivered(e, 2_000)]);
    expect(await queue.backlog(2)).toMatchObject({ pending: 2, held: 2, failingLanes: 1 });
    expect(await queue.backlog(1)).toMatchObject({ pending: 1, held: 1, failingLanes: 1 });
  });

  test('the next due time is the earliest of a retry, a lease’s end and what waits; lanes that are due can be left out', async () => {
    const waiting = newDelivery(1, { prefix: 'bbbbbbbbbb', createdAtMs: 8_000 });
    const later = newDelivery(1, { prefix: 'cccccccccc', createdAtMs: 12_000 });
    const { queue, claim } = await opened();
    expect(await queue.nextDueAtMs()).toBeUndefined();
    await queue.enqueue([one, newDelivery(2, { createdAtMs: 500 }), waiting, later]);
    expect(await queue.nextDueAtMs()).toBe(500);
    expect(await queue.nextDueAtMs(500)).toBe(8_000);
    await claim(1_000);
    expect(await queue.nextDueAtMs(1_000)).toBe(6_000);
    expect(await queue.nextDueAtMs(8_000)).toBe(12_000);
    expect(await queue.nextDueAtMs(12_000)).toBeUndefined();
  });
}
