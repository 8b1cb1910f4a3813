import { describe, expect, test } from 'vitest';
import type { ClaimedDelivery, NewDelivery } from '../../src/push/queue/delivery.ts';
import type { DeliveryQueue } from '../../src/push/queue/delivery-queue.ts';
import { claimFrom, claimOptions, failed, newDelivery } from '../support/deliveries/deliveries.ts';
import { openQueue, type QueueUnderTest } from '../support/deliveries/queue-under-test.ts';

/** The contract of the delivery queue. `open` returns an empty log, which the suite closes. */
export function deliveryQueueContract(open: () => Promise<QueueUnderTest>): void {
  const opened = (...enqueued: readonly NewDelivery[]) => openQueue(open, enqueued);
  const one = newDelivery(1);

  describe('enqueue', () => {
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
  });
}

function ids(deliveries: readonly { readonly id: string }[]): string[] {
  return deliveries.map(({ id }) => id);
}
