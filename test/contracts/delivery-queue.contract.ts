import { describe, expect, test } from 'vitest';
import type { ClaimedDelivery, NewDelivery } from '../../src/push/queue/delivery.ts';
import {
  claimFrom,
  claimOptions,
  delivered,
  failed,
  newDelivery,
  retryAt,
} from '../support/deliveries/deliveries.ts';
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
      const all: ClaimedDelivery[] = [];
      for (let looks = 0; all.length < 40 && looks < 40; looks++) {
        const claims = Array.from({ length: 4 }, (_, n) =>
          claimFrom(n % 2 === 0 ? queue : other, claimOptions(1_000, { holder: `h${n}`, limit: 7 })),
        );
        all.push(...(await Promise.all(claims)).flat());
      }
      expect(all).toHaveLength(40);
      expect(new Set(all.map(({ id }) => id)).size).toBe(40);
    });

    test('leaves alone what has changed since it was read: its claim may be that of an attempt under way', async () => {
      const { queue, second, claim } = await opened(one, newDelivery(2));
      const { lanes } = await queue.heads(claimOptions(1_000));
      const [taken] = await claimFrom(second(), claimOptions(1_000, { limit: 1 }));
      const late = claimOptions(9_000); // the other lease has ended
      const ids = [one.id, newDelivery(2).id].filter((id) => id !== taken?.id);
      expect((await queue.lease(lanes, late)).map(({ id }) => id)).toEqual(ids);
      expect(await claim(9_000)).toMatchObject([{ id: taken?.id }]);
    });

    test('takes no more of a lane than was chosen, the oldest first, also if it has more than are read', async () => {
      const many = Array.from({ length: 300 }, (_, n) => newDelivery(n, { createdAtMs: n }));
      const late = newDelivery(1, { prefix: 'bbbbbbbbbb', createdAtMs: 999 });
      const { queue } = await opened(...many, late);
      const { lanes } = await queue.heads(claimOptions(1_000));
      expect(lanes.map(({ prefix, count }) => [prefix, count])).toEqual([
        [one.prefix, Infinity],
        [late.prefix, Infinity],
      ]);
      const chosen = new Map([
        [one.prefix, 250],
        [late.prefix, 3],
      ]);
      const leased = await queue.lease(lanes, { ...claimOptions(1_000), chosen });
      expect(ids(leased)).toEqual(ids([...many.slice(0, 250), late]));
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

  describe('a clock that was ahead', () => {
    const AHEAD_MS = 3_600_000;
    const LONGEST_WAIT_MS = claimOptions(0).longestWaitMs;

    test('does not put off an attempt by more than it can have to wait', async () => {
      const { queue, claim, claimOne } = await opened(one);
      const first = await claimOne(1_000);
      await queue.report([retryAt(first, 1_000, 2_000 + LONGEST_WAIT_MS + 1)]);
      expect(await claim(1_000)).toMatchObject([{ id: one.id, attemptNumber: 2 }]);
    });

    test('is not assumed where an attempt waits as long as it may', async () => {
      const { queue, claimOne } = await opened(one);
      const dueAtMs = 1_000 + LONGEST_WAIT_MS;
      await queue.report([retryAt(await claimOne(1_000), 1_000, dueAtMs)]);
      expect(await queue.heads(claimOptions(1_000))).toEqual({ lanes: [], nextAtMs: dueAtMs });
    });

    test('makes a claim last no longer than one lease from when another process sees it', async () => {
      const { queue, claim, claimOne, second } = await opened(one);
      await claimOne(AHEAD_MS);
      const other = second();
      expect(await claimFrom(other, claimOptions(1_000))).toEqual([]);
      expect(await other.heads(claimOptions(1_000))).toEqual({ lanes: [], nextAtMs: 6_000 });
      expect(await claim(5_999)).toEqual([]);
      expect(await claim(6_000)).toMatchObject([{ attemptNumber: 1 }]);
      expect((await queue.find(one.id))?.dueAtMs).toBe(11_000);
    });

    test('does not take a claim from a process that works on its lane', async () => {
      const { queue, claim, claimOne, stateOf } = await opened(one);
      const claimed = await claimOne(AHEAD_MS);
      expect(await claim(1_000, { laneCapacity: () => 0 })).toEqual([]);
      expect((await queue.find(one.id))?.dueAtMs).toBe(AHEAD_MS + 5_000);
      expect(await claim(1_000)).toEqual([]);
      await queue.report([delivered(claimed, 1_000)]);
      expect(await stateOf(one)).toBe('delivered');
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
