import { describe, expect, test } from 'vitest';
import type { ClaimedDelivery, NewDelivery } from '../../src/push/queue/delivery.ts';
import type { DeliveryQueue } from '../../src/push/queue/delivery-queue.ts';
import { claimFrom, claimOptions, delivered, failed, newDelivery } from '../support/deliveries/deliveries.ts';
import { countByState } from '../support/deliveries/listed.ts';
import { openQueue, type QueueUnderTest } from '../support/deliveries/queue-under-test.ts';

/** The contract of the delivery queue. `open` returns an empty log, which the suite closes. */
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

    test('with a claim hands out nothing that is withdrawn or existed before, and leaves the others due', async () => {
      const { queue, claim, stateOf } = await opened(one);
      await queue.change({ kind: 'withdraw', transactionIds: [2] }, 1_000);
      const [withdrawn, fresh, other] = [newDelivery(2), newDelivery(3), newDelivery(4)];
      const claiming = claimOptions(500, { laneCapacity: () => 1 });
      expect(await queue.enqueue([one, other], claiming)).toEqual([]);
      expect(await queue.enqueue([withdrawn, fresh], claiming)).toEqual([]);
      expect(await stateOf(withdrawn)).toBe('withdrawn');
      expect(ids(await claim(1_000)).sort()).toEqual(ids([one, fresh, other]).sort());
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
        claimFrom(n % 2 === 0 ? queue : other, claimOptions(1_000, { holder: `h${n}`, limit: 7 })),
      );
      const claimed = (await Promise.all(rounds)).flat();
      expect(claimed).toHaveLength(40);
      expect(new Set(claimed.map(({ id }) => id)).size).toBe(40);
    });

    test('does not let ten thousand deliveries of one lane delay the single one of another', async () => {
      const { queue, claim } = await opened();
      const single = newDelivery(1, { prefix: 'bbbbbbbbbb', createdAtMs: 2_000 });
      const laneCapacity = (prefix: string) => (prefix === single.prefix ? 10 : 0);
      // The fastest of many, since most take longer on a busy machine.
      const leastMs = async (): Promise<number> => {
        const durationsMs: number[] = [];
        for (let n = 0; n < 21; n++) {
          const start = performance.now();
          expect(await claim(2_000, { laneCapacity })).toEqual([]);
          durationsMs.push(performance.now() - start);
        }
        return Math.min(...durationsMs);
      };
      const enqueue = async (from: number, to: number): Promise<void> => {
        for (let n = from; n < to; n += 500)
          await queue.enqueue(Array.from({ length: 500 }, (_, more) => newDelivery(n + more)));
      };
      await enqueue(0, 1_000);
      const ofFewMs = await leastMs();
      await enqueue(1_000, 10_000);
      await queue.enqueue([single]);
      expect(ids(await claim(2_000, { laneCapacity }))).toEqual([single.id]);
      expect(await leastMs()).toBeLessThan(2 + 3 * ofFewMs); // reading the backlog takes ten times as long
    });
  });

  describe('what a clock that was ahead has dated', () => {
    const AHEAD_MS = 3_600_000;
    const late = (queue: DeliveryQueue, nowMs: number) =>
      queue.late({ claimsMs: nowMs + 5_000, othersMs: nowMs + 330_000 }, 10);

    test('are redeliveries only where their lane has nothing due earlier', async () => {
      const { queue, claim } = await opened(newDelivery(1), newDelivery(2));
      await queue.report((await claim(1_000)).map((each) => failed(each, 1_000)));
      const again = (n: number, dueAtMs: number) =>
        queue.redeliver(newDelivery(n), { force: false, dueAtMs });
      await again(1, AHEAD_MS);
      expect((await late(queue, 1_000)).map(({ id }) => id)).toEqual([newDelivery(1).id]);
      await again(2, 2_000);
      expect(await late(queue, 1_000)).toEqual([]);
    });
  });

  describe('report', () => {
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

    test('of an unknown delivery changes nothing', async () => {
      const { queue } = await opened();
      const unknown = { ...one, cycle: 1, attemptNumber: 1, leaseToken: 'x' };
      expect(await queue.report([delivered(unknown, 1_000), failed(unknown, 1_000)])).toEqual(new Map());
      expect(await queue.find(one.id)).toBeUndefined();
    });
  });
}

function ids(deliveries: readonly { readonly id: string }[]): string[] {
  return deliveries.map(({ id }) => id);
}
