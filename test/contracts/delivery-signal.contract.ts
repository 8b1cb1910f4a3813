import { expect, test } from 'vitest';
import type { ClaimedDelivery, NewDelivery } from '../../src/push/queue/delivery.ts';
import { claimOf, claimOptions, failed, newDelivery, retryAt } from '../support/deliveries/deliveries.ts';
import { openQueue, type QueueUnderTest } from '../support/deliveries/queue-under-test.ts';

/** The contract of the signal for new work, on engines that notify of others' writes instead of polling. */
export function deliverySignalContract(open: () => Promise<QueueUnderTest>): void {
  const opened = (...enqueued: readonly NewDelivery[]) => openQueue(open, enqueued);
  const one = newDelivery(1);

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
    await queue.redeliver(one, { force: false, dueAtMs: nowMs + 1_000 });
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

  test('a listener is notified of what is stored unclaimed or given back', async () => {
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
    expect(await notificationsOf(queue.report([{ kind: 'released', ...claimOf(first) }]))).toBeGreaterThan(0);
  });
}
