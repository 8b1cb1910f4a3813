import { describe, expect, test } from 'vitest';
import type { ClaimedDelivery, NewDelivery } from '../../src/push/queue/delivery.ts';
import {
  claimOf,
  delivered,
  failed,
  held,
  newDelivery,
  retryAt,
  TIMEOUT,
  UNAVAILABLE,
} from '../support/deliveries/deliveries.ts';
import { openQueue, type QueueUnderTest } from '../support/deliveries/queue-under-test.ts';

/** What the switching off of webhooks relies on. `open` gives an empty log; the suite closes it. */
export function webhookHealthContract(open: () => Promise<QueueUnderTest>): void {
  const opened = (...enqueued: readonly NewDelivery[]) => openQueue(open, enqueued);
  const one = newDelivery(1);

  describe('the failure streak', () => {
    test('counts failed deliveries, not attempts, from the first one’s end, and keeps the last five answers', async () => {
      const batch = Array.from({ length: 7 }, (_, n) => newDelivery(n));
      const { queue, claim } = await opened(...batch);
      const [retried, ...rest] = (await claim(1_000)) as [ClaimedDelivery, ...ClaimedDelivery[]];
      expect(await queue.report([retryAt(retried, 1_000, 2_000)])).toEqual(new Map());
      const reported = await queue.report(
        rest.map((claimed, n) => failed(claimed, 1_000 + n, n === 5 ? TIMEOUT : UNAVAILABLE)),
      );
      const health = {
        failedInARow: 6,
        failingSinceMs: 1_250,
        lastAnswers: ['timeout: no answer in 500 ms', '503', '503', '503', '503'],
      };
      expect(reported).toEqual(new Map([[one.prefix, health]]));
      expect(await queue.health(one.prefix)).toEqual(health);
    });

    test('ends with a success of that lane, and is reported once', async () => {
      const batch = [1, 2, 3].flatMap((n) => [newDelivery(n), newDelivery(n, { prefix: 'bbbbbbbbbb' })]);
      const { queue, claim } = await opened(...batch);
      const claimed = await claim(1_000);
      const [a1, a2, a3] = claimed.filter(({ prefix }) => prefix === one.prefix) as [
        ClaimedDelivery,
        ClaimedDelivery,
        ClaimedDelivery,
      ];
      const b = claimed.find(({ prefix }) => prefix !== one.prefix) as ClaimedDelivery;
      await queue.report([failed(a1, 1_000), failed(b, 1_000)]);
      const healthy = { failedInARow: 0, failingSinceMs: null, lastAnswers: [] };
      expect(await queue.report([delivered(a2, 1_000)])).toEqual(new Map([[one.prefix, healthy]]));
      expect(await queue.report([delivered(a3, 1_000)])).toEqual(new Map());
      expect((await queue.health(b.prefix)).failedInARow).toBe(1);
    });

    test('does not count what ended without an attempt', async () => {
      const { queue, claimOne } = await opened(one);
      const ended = { ...claimOf(await claimOne(1_000)), attempt: null, reason: 'the key is off' };
      expect(await queue.report([{ kind: 'failed', ...ended }])).toEqual(new Map());
      expect(await queue.find(one.id)).toMatchObject({
        state: 'failed',
        reason: 'the key is off',
        attempts: [],
      });
    });

    test('is exact when two processes report at once', async () => {
      const { queue, claim, second } = await opened(...Array.from({ length: 60 }, (_, n) => newDelivery(n)));
      const other = second();
      const claimed = await claim(1_000);
      await Promise.all(
        claimed.map((entry, n) => (n % 2 === 0 ? queue : other).report([failed(entry, 1_000)])),
      );
      expect((await other.health(one.prefix)).failedInARow).toBe(60);
    });

    test('is reset once for each time its webhook was enabled, and not where it began then or later', async () => {
      const { queue, claim } = await opened(one, newDelivery(2));
      const [a, b] = (await claim(1_000)) as [ClaimedDelivery, ClaimedDelivery];
      await queue.report([failed(a, 1_000), held(b)]);
      await queue.resetHealth(one.prefix, 1_250);
      expect(await queue.health(one.prefix)).toMatchObject({ failedInARow: 1, failingSinceMs: 1_250 });
      await queue.resume(7, 2_000);
      const heldOnce = { failedInARow: 1, failingSinceMs: null };
      expect(await queue.health(one.prefix)).toMatchObject(heldOnce);
      await queue.resetHealth(one.prefix, 1_250); // as a process that starts, which sees the event again
      expect(await queue.health(one.prefix)).toMatchObject(heldOnce);
      await queue.resetHealth(one.prefix, 1_900);
      expect(await queue.health(one.prefix)).toMatchObject({ failedInARow: 0, failingSinceMs: null });
      await queue.report([failed((await claim(2_000))[0] as ClaimedDelivery, 2_000)]);
      await queue.resetHealth(one.prefix, 2_251);
      expect(await queue.health(one.prefix)).toMatchObject({ failedInARow: 0, failingSinceMs: null });
    });

    test('is not reset by the time of a lane that never failed before', async () => {
      const { queue, claim } = await opened(one, newDelivery(2));
      await queue.resetHealth(one.prefix, 500);
      const [a, b] = (await claim(1_000)) as [ClaimedDelivery, ClaimedDelivery];
      await queue.report([failed(a, 1_000), held(b)]);
      await queue.resume(7, 2_000);
      await queue.resetHealth(one.prefix, 500);
      expect(await queue.health(one.prefix)).toMatchObject({ failedInARow: 1 });
    });

    test('is forgotten on reset', async () => {
      const { queue, claimOne } = await opened(one);
      await queue.report([failed(await claimOne(1_000), 1_000)]);
      await queue.resetHealth(one.prefix, 1_251);
      expect(await queue.health(one.prefix)).toEqual({
        failedInARow: 0,
        failingSinceMs: null,
        lastAnswers: [],
      });
    });
  });
}
