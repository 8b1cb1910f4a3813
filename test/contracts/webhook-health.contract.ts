import { describe, expect, test } from 'vitest';
import type { ClaimedDelivery, NewDelivery } from '../../src/push/queue/delivery.ts';
import {
  failed,
  held,
  newDelivery,
  retryAt,
  TIMEOUT,
  UNAVAILABLE,
} from '../support/deliveries/deliveries.ts';
import { openQueue, type QueueUnderTest } from '../support/deliveries/queue-under-test.ts';

/** The contract that the disabling of webhooks needs. `open` returns an empty log, which the suite closes. */
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

    test('is exact when two processes report at once', async () => {
      const { queue, claim, second } = await opened(...Array.from({ length: 20 }, (_, n) => newDelivery(n)));
      const other = second();
      const claimed = await claim(1_000);
      await Promise.all(
        claimed.map((entry, n) => (n % 2 === 0 ? queue : other).report([failed(entry, 1_000)])),
      );
      expect((await other.health(one.prefix)).failedInARow).toBe(20);
    });

    test('is reset once for each time its webhook was enabled, and not where it began then or later', async () => {
      const { queue, claim } = await opened(one, newDelivery(2));
      const [a, b] = (await claim(1_000)) as [ClaimedDelivery, ClaimedDelivery];
      await queue.report([failed(a, 1_000), held(b)]);
      await queue.change({ kind: 'enabled', prefix: one.prefix, atMs: 1_250 }, 1_250);
      expect(await queue.health(one.prefix)).toMatchObject({ failedInARow: 1, failingSinceMs: 1_250 });
      await queue.change({ kind: 'resume', accountId: 7 }, 2_000);
      const heldOnce = { failedInARow: 1, failingSinceMs: null };
      expect(await queue.health(one.prefix)).toMatchObject(heldOnce);
      await queue.change({ kind: 'enabled', prefix: one.prefix, atMs: 1_250 }, 1_250); // as a process that starts, which sees the event again
      expect(await queue.health(one.prefix)).toMatchObject(heldOnce);
      await queue.change({ kind: 'enabled', prefix: one.prefix, atMs: 1_900 }, 1_900);
      expect(await queue.health(one.prefix)).toMatchObject({ failedInARow: 0, failingSinceMs: null });
      await queue.report([failed((await claim(2_000))[0] as ClaimedDelivery, 2_000)]);
      await queue.change({ kind: 'enabled', prefix: one.prefix, atMs: 2_251 }, 2_251);
      expect(await queue.health(one.prefix)).toMatchObject({ failedInARow: 0, failingSinceMs: null });
    });
  });
}
