import { describe, expect, onTestFinished, test } from 'vitest';
import type { ClaimedDelivery, NewDelivery } from '../../src/push/queue/delivery.ts';
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
  TIMEOUT,
  UNAVAILABLE,
} from '../support/deliveries/deliveries.ts';
import { countByState } from '../support/deliveries/listed.ts';
import {
  claimElsewhere,
  openQueue,
  type QueueUnderTest,
  type SharedQueueUnderTest,
} from '../support/deliveries/queue-under-test.ts';

/** For a log that other threads and processes open too. */
export function sharedDeliveryQueueContract(open: () => Promise<SharedQueueUnderTest>): void {
  describe('claim', () => {
    test('gives nothing that another process claims after it was chosen, and takes what is left instead', async () => {
      const batch = Array.from({ length: 9 }, (_, n) => newDelivery(n, { createdAtMs: n }));
      const { queue, log } = await open();
      onTestFinished(() => queue.close());
      await queue.enqueue(batch);
      const elsewhere = await claimElsewhere(log);
      let taken: readonly string[] = [];
      // The capacity is asked for when what is due is known, and before any of it is leased.
      const overtaken = (count: number, capacity: number) => () => {
        if (taken.length === 0) taken = elsewhere(1_000, count);
        return capacity;
      };
      const byLimit = await queue.claim(claimOptions(1_000, { limit: 3, laneCapacity: overtaken(2, 100) }));
      expect([...taken, ...ids(byLimit)]).toEqual(ids(batch.slice(0, 5)));
      taken = [];
      const byCapacity = await queue.claim(claimOptions(1_000, { laneCapacity: overtaken(1, 2) }));
      expect([...taken, ...ids(byCapacity)]).toEqual(ids(batch.slice(5, 8)));
      await queue.report(byCapacity.map((claimed) => delivered(claimed, 1_000)));
      expect(await countByState(queue)).toMatchObject({ pending: 7, delivered: 2 });
      expect(ids(await queue.claim(claimOptions(1_000)))).toEqual(ids(batch.slice(8)));
    });
  });
}

/** What dispatchers, fan-out and operators rely on. `open` gives an empty log; the suite closes it. */
export function deliveryQueueContract(open: () => Promise<QueueUnderTest>): void {
  const opened = (...enqueued: readonly NewDelivery[]) => openQueue(open, enqueued);
  const one = newDelivery(1);

  describe('enqueue', () => {
    test('stores what was given, due when it was created, and finds it again', async () => {
      const { queue, claim } = await opened(one);
      expect(await queue.find(one.id)).toEqual({
        ...one,
        state: 'pending',
        reason: null,
        cycle: 1,
        attemptsInCycle: 0,
        dueAtMs: one.createdAtMs,
        attempts: [],
      });
      expect(await claim(one.createdAtMs - 1)).toEqual([]);
      expect(await claim(one.createdAtMs)).toEqual([
        { ...one, cycle: 1, attemptNumber: 1, leaseToken: expect.any(String) },
      ]);
    });

    test('of an existing delivery changes nothing in any state, and claims nothing', async () => {
      const { queue, claimOne } = await opened(one);
      await queue.report([delivered(await claimOne(1_000), 1_000)]);
      const before = await queue.find(one.id);
      const changed = { ...one, createdAtMs: 5_000, record: { ...one.record, head: 'other' } };
      expect(await queue.enqueue([changed, changed], claimOptions(9_000))).toEqual([]);
      expect(await queue.find(one.id)).toEqual(before);
      expect(await countByState(queue)).toMatchObject({ delivered: 1, pending: 0 });
    });

    test('with a claim hands out what is new in the same step, at most a lane’s capacity', async () => {
      const { queue, claim } = await opened();
      const batch = [1, 2, 3].map((n) => newDelivery(n));
      const other = newDelivery(4, { prefix: 'bbbbbbbbbb' });
      const laneCapacity = (prefix: string) => (prefix === one.prefix ? 2 : 0);
      const claimed = await queue.enqueue([...batch, other], claimOptions(1_000, { laneCapacity }));
      expect(claimed.map(({ id }) => id)).toEqual([batch[0]?.id, batch[1]?.id]);
      expect(claimed[0]).toEqual({ ...one, cycle: 1, attemptNumber: 1, leaseToken: expect.any(String) });
      expect(ids(await claim(5_999)).sort()).toEqual(ids([...batch.slice(2), other]).sort());
      expect(ids(await claim(6_000)).sort()).toEqual(ids(batch.slice(0, 2)).sort());
    });

    test('with a claim keeps no slot for what is withdrawn or existed before', async () => {
      const { queue, stateOf } = await opened(one);
      await queue.withdraw([2], 1_000);
      const [withdrawn, fresh, other] = [newDelivery(2), newDelivery(3), newDelivery(4)];
      const claiming = claimOptions(500, { laneCapacity: () => 1 });
      expect(ids(await queue.enqueue([one, other], claiming))).toEqual([other.id]);
      expect(ids(await queue.enqueue([withdrawn, fresh], claiming))).toEqual([fresh.id]);
      expect(await stateOf(withdrawn)).toBe('withdrawn');
    });

    test('stores all of a batch or nothing', async () => {
      const { queue } = await opened();
      const bad = newDelivery(2, { createdAtMs: Number.NaN });
      await expect(queue.enqueue([one, bad])).rejects.toThrow();
      expect(await queue.find(one.id)).toBeUndefined();
    });
  });

  describe('claim', () => {
    test('by two processes at once gives each delivery to one of them', async () => {
      const { queue, second } = await opened(...Array.from({ length: 40 }, (_, n) => newDelivery(n)));
      const other = second();
      const rounds = Array.from({ length: 8 }, (_, n) =>
        (n % 2 === 0 ? queue : other).claim(claimOptions(1_000, { holder: `h${n}`, limit: 7 })),
      );
      const claimed = (await Promise.all(rounds)).flat();
      expect(claimed).toHaveLength(40);
      expect(new Set(claimed.map(({ id }) => id)).size).toBe(40);
    });

    test('that ended without a report is due again under the same number, and its old token counts no more', async () => {
      const { queue, claim, claimOne } = await opened(one);
      const first = await claimOne(1_000);
      expect(await claim(5_999)).toEqual([]);
      const again = await claimOne(6_000);
      expect(again).toEqual({ ...first, leaseToken: expect.any(String) });
      expect(again.leaseToken).not.toBe(first.leaseToken);
      await queue.report([
        failed(first, 1_000),
        held(first),
        { kind: 'released', ...claimOf(first) },
        retryAt(first, 1_000, 2_000),
      ]);
      expect(await queue.find(one.id)).toMatchObject({ state: 'pending', attempts: [], dueAtMs: 11_000 });
      await queue.report([failed(again, 6_000)]);
      expect(await queue.find(one.id)).toMatchObject({ state: 'failed', attemptsInCycle: 1 });
    });

    test('whose lease ended and that no other claim followed can still be reported', async () => {
      const { queue, claimOne, stateOf } = await opened(one);
      await queue.report([failed(await claimOne(1_000), 60_000)]);
      expect(await stateOf(one)).toBe('failed');
    });

    test('takes the oldest due of a lane first, and lanes that wait longest first', async () => {
      const [young, old] = [newDelivery(1, { createdAtMs: 30 }), newDelivery(2, { createdAtMs: 10 })];
      const other = newDelivery(3, { prefix: 'bbbbbbbbbb', createdAtMs: 20 });
      const { claim } = await opened(young, old, other);
      const laneCapacity = () => 1;
      expect(ids(await claim(40, { limit: 1, laneCapacity }))).toEqual([old.id]);
      expect(ids(await claim(40, { limit: 1, laneCapacity }))).toEqual([other.id]);
      expect(ids(await claim(40, { limit: 1, laneCapacity }))).toEqual([young.id]);
    });

    test('takes no more than a lane’s capacity nor than its limit, and nothing for a limit or a capacity of none', async () => {
      const lanes = ['aaaaaaaaaa', 'bbbbbbbbbb', 'cccccccccc'];
      const all = lanes.flatMap((prefix) => [1, 2, 3, 4].map((n) => newDelivery(n, { prefix })));
      const { claim } = await opened(...all);
      expect(await claim(1_000, { limit: 0 })).toEqual([]);
      expect(await claim(1_000, { laneCapacity: () => -1 })).toEqual([]);
      const laneCapacity = (prefix: string) => ({ aaaaaaaaaa: 0, bbbbbbbbbb: 1 })[prefix] ?? 3;
      const claimed = await claim(1_000, { laneCapacity });
      expect(claimed.map(({ prefix }) => prefix).sort()).toEqual(
        ['b', 'c', 'c', 'c'].map((c) => c.repeat(10)),
      );
      expect(await claim(1_000, { limit: 5 })).toHaveLength(5);
    });

    test('does not let ten thousand deliveries of one lane delay the single one of another', async () => {
      const { queue, claim } = await opened();
      const single = newDelivery(1, { prefix: 'bbbbbbbbbb', createdAtMs: 2_000 });
      const laneCapacity = (prefix: string) => (prefix === single.prefix ? 10 : 0);
      // The fastest of many: on a busy machine most take longer.
      const leastMs = async (): Promise<number> => {
        const durationsMs: number[] = [];
        for (let n = 0; n < 51; n++) {
          const start = performance.now();
          expect(await claim(2_000, { laneCapacity })).toEqual([]);
          durationsMs.push(performance.now() - start);
        }
        return Math.min(...durationsMs);
      };
      const roundTripMs = await leastMs();
      for (let batch = 0; batch < 20; batch++) {
        await queue.enqueue(Array.from({ length: 500 }, (_, n) => newDelivery(batch * 500 + n)));
      }
      await queue.enqueue([single]);
      expect(ids(await claim(2_000, { laneCapacity }))).toEqual([single.id]);
      expect(await leastMs()).toBeLessThan(5 + 5 * roundTripMs); // reading the backlog takes far more
    });
  });

  describe('report', () => {
    test('makes a retry due exactly when it says, with the next number', async () => {
      const { queue, claim, claimOne } = await opened(one);
      await queue.report([retryAt(await claimOne(1_000), 1_000, 31_250)]);
      expect(await queue.nextDueAtMs()).toBe(31_250);
      expect(await claim(31_249)).toEqual([]);
      expect(await claimOne(31_250)).toMatchObject({ cycle: 1, attemptNumber: 2 });
    });

    test('keeps every attempt with its answer, in order', async () => {
      const { queue, claimOne } = await opened(one);
      const first = await claimOne(1_000);
      await queue.report([retryAt(first, 1_000, 2_000)]);
      const next = await claimOne(2_000);
      await queue.report([retryAt(next, 2_000, 3_000, TIMEOUT)]);
      const last = await claimOne(3_000);
      await queue.report([delivered(last, 3_000)]);
      expect(await queue.find(one.id)).toMatchObject({
        state: 'delivered',
        reason: null,
        dueAtMs: null,
        attemptsInCycle: 3,
        attempts: [
          attemptOf(first, 1_000, UNAVAILABLE),
          attemptOf(next, 2_000, TIMEOUT),
          attemptOf(last, 3_000, SUCCESS),
        ],
      });
    });

    test('records all of its outcomes or none', async () => {
      const { queue, claim, stateOf } = await opened(one, newDelivery(2));
      const [a, b] = (await claim(1_000)) as [ClaimedDelivery, ClaimedDelivery];
      await expect(queue.report([failed(a, 1_000), failed(b, Number.NaN)])).rejects.toThrow();
      expect(await stateOf(a)).toBe('pending');
      expect((await queue.find(a.id))?.attempts).toEqual([]);
      expect((await queue.health(one.prefix)).failedInARow).toBe(0);
      await queue.report([failed(a, 1_000), failed(b, 1_000)]);
      expect((await queue.health(one.prefix)).failedInARow).toBe(2);
    });

    test('twice is once', async () => {
      const { queue, claimOne } = await opened(one);
      const claimed = await claimOne(1_000);
      await queue.report([retryAt(claimed, 1_000, 2_000), retryAt(claimed, 1_000, 9_000)]);
      await queue.report([failed(claimed, 1_000)]);
      expect(await queue.find(one.id)).toMatchObject({
        state: 'pending',
        dueAtMs: 2_000,
        attemptsInCycle: 1,
      });
    });

    test('of an unknown delivery changes nothing', async () => {
      const { queue } = await opened();
      const unknown = { ...one, cycle: 1, attemptNumber: 1, leaseToken: 'x' };
      expect(await queue.report([delivered(unknown, 1_000), failed(unknown, 1_000)])).toEqual(new Map());
      expect(await queue.find(one.id)).toBeUndefined();
    });

    test('gives back a released delivery at once, untouched', async () => {
      const { queue, claim, claimOne } = await opened(one);
      const claimed = await claimOne(1_000);
      await queue.report([{ kind: 'released', ...claimOf(claimed) }]);
      const dueAtMs = (await queue.nextDueAtMs()) as number;
      expect(await claim(dueAtMs)).toMatchObject([{ id: one.id, attemptNumber: 1 }]);
    });

    test('records a success that another claim overtook, and then nothing more of it', async () => {
      const { queue, claimOne, stateOf } = await opened(one);
      const slow = await claimOne(1_000);
      const other = await claimOne(6_000);
      await queue.report([delivered(slow, 1_000)]);
      expect(await stateOf(one)).toBe('delivered');
      await queue.report([failed(other, 6_000)]);
      await queue.report([delivered(other, 6_000)]);
      expect(await queue.find(one.id)).toMatchObject({ state: 'delivered', attemptsInCycle: 1 });
      expect(await queue.health(one.prefix)).toMatchObject({ failedInARow: 0 });
    });

    test('records a success of a delivery that was withdrawn or ended meanwhile', async () => {
      const { queue, claim, stateOf } = await opened(one, newDelivery(2));
      const [a, b] = (await claim(1_000)) as [ClaimedDelivery, ClaimedDelivery];
      await queue.withdraw([a.transactionId], 1_100);
      await queue.endLane(b.prefix, 'the key is off', 1_100);
      await queue.report([delivered(a, 1_000), delivered(b, 1_000)]);
      expect([await stateOf(a), await stateOf(b)]).toEqual(['delivered', 'delivered']);
    });

    test('keeps the failed attempt that was under way when its delivery ended, once and outside the failure streak', async () => {
      const { queue, claim, claimOne } = await opened(one, newDelivery(2));
      const [a, b] = (await claim(1_000)) as [ClaimedDelivery, ClaimedDelivery];
      await queue.report([retryAt(b, 1_000, 2_000)]);
      const again = await claimOne(2_000);
      await queue.withdraw([a.transactionId], 2_100);
      await queue.endLane(b.prefix, 'the key is off', 2_100);
      const reports = [failed(a, 1_000), retryAt(again, 2_000, 3_000, TIMEOUT)];
      for (let times = 0; times < 2; times++) expect(await queue.report(reports)).toEqual(new Map());
      expect(await queue.find(a.id)).toMatchObject({
        state: 'withdrawn',
        dueAtMs: null,
        attemptsInCycle: 1,
        attempts: [attemptOf(a, 1_000, UNAVAILABLE)],
      });
      expect(await queue.find(b.id)).toMatchObject({
        state: 'failed',
        reason: 'the key is off',
        dueAtMs: null,
        attemptsInCycle: 2,
        attempts: [attemptOf(b, 1_000, UNAVAILABLE), attemptOf(again, 2_000, TIMEOUT)],
      });
      expect((await queue.health(one.prefix)).failedInARow).toBe(0);
      expect(await claim(9_000_000)).toEqual([]);
    });

    test('keeps no failed attempt of a former cycle, nor one that was repeated meanwhile', async () => {
      const { queue, claimOne } = await opened(one);
      const slow = await claimOne(1_000);
      await queue.report([retryAt(await claimOne(6_000), 6_000, 7_000)]);
      await queue.endLane(one.prefix, 'the key is off', 6_100);
      await queue.report([failed(slow, 1_000)]);
      expect((await queue.find(one.id))?.attempts).toMatchObject([{ startedAtMs: 6_000 }]);
      await queue.redeliver(one.id, { force: false, dueAtMs: 7_000 });
      await queue.endLane(one.prefix, 'the key is off', 7_100);
      await queue.report([failed(slow, 1_000)]);
      expect(await queue.find(one.id)).toMatchObject({ cycle: 2, attemptsInCycle: 0, attempts: [{}] });
    });

    test.each([
      ['failure', (claim: ClaimedDelivery) => failed(claim, 1_000)],
      ['retry', (claim: ClaimedDelivery) => retryAt(claim, 1_000, 2_000)],
    ])(
      'takes a %s and a success of one delivery in their order, as if they came one by one',
      async (_, report) => {
        const { queue, claimOne } = await opened(one);
        const first = await claimOne(1_000);
        await queue.withdraw([first.transactionId], 1_100);
        await queue.report([report(first), delivered(first, 1_000)]);
        expect(await queue.find(one.id)).toMatchObject({
          state: 'delivered',
          attempts: [attemptOf(first, 1_000, UNAVAILABLE), {}],
        });
      },
    );

    test('does not end a new cycle with a success of the one before', async () => {
      const { queue, claimOne } = await opened(one);
      const slow = await claimOne(1_000);
      await queue.report([delivered(await claimOne(6_000), 6_000)]);
      await queue.redeliver(one.id, { force: true, dueAtMs: 7_000 });
      await queue.report([delivered(slow, 1_000)]);
      await queue.report([delivered(slow, 1_000), delivered(slow, 1_000)]);
      expect(await queue.find(one.id)).toMatchObject({ state: 'pending', cycle: 2, attemptsInCycle: 0 });
    });
  });
}

function ids(deliveries: readonly { readonly id: string }[]): string[] {
  return deliveries.map(({ id }) => id);
}
