import { describe, expect, onTestFinished, test } from 'vitest';
import type { NewDelivery } from '../../src/push/queue/delivery.ts';
import type { DeliveryQueue } from '../../src/push/queue/delivery-queue.ts';
import type { DeliveryFilter, DeliveryPlace } from '../../src/push/queue/delivery-reads.ts';
import {
  claimOptions,
  delivered,
  failed,
  held,
  newDelivery,
  retryAt,
  TIMEOUT,
} from '../support/deliveries/deliveries.ts';
import { listed } from '../support/deliveries/listed.ts';

/** What is read of the delivery log again and again while the service runs. `open` gives an empty log. */
export function boundedReadsContract(open: () => Promise<{ readonly queue: DeliveryQueue }>): void {
  const opened = async (...enqueued: readonly NewDelivery[]) => {
    const { queue } = await open();
    onTestFinished(() => queue.close());
    await queue.enqueue(enqueued);
    return { queue, reads: queue };
  };
  const claimed = async (queue: DeliveryQueue, prefix?: string) =>
    queue.claim(claimOptions(9_000, { laneCapacity: (lane) => ((prefix ?? lane) === lane ? 100 : 0) }));

  /** Twenty deliveries of two accounts, one of two keys, several in a millisecond; the even transactions were delivered. */
  const sample = Array.from({ length: 20 }, (_, n) =>
    newDelivery(n, {
      prefix: n % 3 === 0 ? 'bbbbbbbbbb' : n % 4 === 1 ? 'cccccccccc' : 'aaaaaaaaaa',
      accountId: n % 3 === 0 ? 8 : 7,
      createdAtMs: 1_000 + Math.floor(n / 4),
    }),
  );
  const sampled = async () => {
    const { queue, reads } = await opened(...sample);
    const claims = await claimed(queue);
    await queue.report(
      claims.map((claim) =>
        claim.transactionId % 2 === 0
          ? delivered(claim, 2_000)
          : claim.transactionId % 5 === 0
            ? failed(claim, 2_000)
            : retryAt(claim, 2_000, 20_000),
      ),
    );
    return { queue, reads };
  };
  const filters: readonly DeliveryFilter[] = [
    {},
    { prefix: 'bbbbbbbbbb' },
    { accountId: 7 },
    { accountId: 7, sinceMs: 1_001, untilMs: 1_003 },
    { accountId: 9 },
    { transactionId: 4 },
    { sinceMs: 1_001, untilMs: 1_003 },
    ...(['pending', 'delivered', 'failed', 'held'] as const).flatMap((state) => [
      { state },
      { state, prefix: 'aaaaaaaaaa' },
      { state, accountId: 8, sinceMs: 1_001 },
    ]),
  ];

  describe('a page of the log', () => {
    test('and those after it are the list of every filter, however little is read for one', async () => {
      const { queue, reads } = await sampled();
      for (const filter of filters) {
        const wanted = (await listed(queue, filter)).map(({ id }) => id);
        for (const [limit, maxRead] of [
          [3, 100],
          [3, 2],
          [1, 5],
        ] as const) {
          const walked: string[] = [];
          let after: DeliveryPlace | undefined;
          do {
            const { deliveries, next } = await reads.page(filter, { limit, after, maxRead });
            expect(deliveries.length).toBeLessThanOrEqual(limit);
            for (const { id } of deliveries) walked.push(id);
            after = next;
          } while (after !== undefined);
          expect(walked, JSON.stringify({ filter, limit, maxRead })).toEqual(wanted);
        }
      }
    });

    test('ends early where what was read does not match, and says where it continues', async () => {
      const { reads } = await opened(...sample);
      const { deliveries, next } = await reads.page({ state: 'delivered' }, { limit: 5, maxRead: 8 });
      expect(deliveries).toEqual([]);
      expect(next).toMatchObject({ createdAtMs: expect.any(Number), id: expect.any(String) });
    });
  });

  test('failing lanes are those with a failure streak, the longest first, at most as many as asked for', async () => {
    const lanes = ['aaaaaaaaaa', 'bbbbbbbbbb', 'cccccccccc'];
    const owed = lanes.flatMap((prefix, lane) =>
      Array.from({ length: lane + 1 }, (_, n) => newDelivery(n, { prefix })),
    );
    const { queue, reads } = await opened(...owed);
    expect(await reads.failingLanes(5)).toEqual([]);
    const claims = await claimed(queue);
    await queue.report(claims.map((claim) => failed(claim, 2_000)));
    const found = await reads.failingLanes(5);
    expect(found.map(({ prefix, failedInARow }) => [prefix, failedInARow])).toEqual([
      ['cccccccccc', 3],
      ['bbbbbbbbbb', 2],
      ['aaaaaaaaaa', 1],
    ]);
    const { prefix = '', ...health } = found[0] ?? {};
    expect(health).toEqual(await queue.health(prefix));
    expect(await reads.failingLanes(1)).toHaveLength(1);
    await queue.resetHealth('cccccccccc', 1e9);
    expect((await reads.failingLanes(5)).map((lane) => lane.prefix)).toEqual(['bbbbbbbbbb', 'aaaaaaaaaa']);
  });

  test('the attempts of a lane are those of its newest attempted deliveries, in the order of time', async () => {
    const older = newDelivery(1, { createdAtMs: 1_000 });
    const newer = newDelivery(2, { createdAtMs: 1_500 });
    const waiting = newDelivery(3, { createdAtMs: 20_000 });
    const other = newDelivery(1, { prefix: 'bbbbbbbbbb' });
    const { queue, reads } = await opened(older, newer, waiting, other);
    const of = new Map((await claimed(queue)).map((claim) => [claim.id, claim]));
    const claimOf = ({ id }: NewDelivery) => of.get(id) as NonNullable<ReturnType<typeof of.get>>;
    await queue.report([
      retryAt(claimOf(newer), 3_000, 4_000, TIMEOUT),
      delivered(claimOf(older), 2_000),
      delivered(claimOf(other), 2_500),
    ]);
    const all = { deliveries: 10, maxRead: 10 };
    expect(await reads.attempts('aaaaaaaaaa', all)).toEqual([
      { deliveryId: older.id, startedAtMs: 2_000, durationMs: 250, ok: true, answer: '204' },
      { deliveryId: newer.id, startedAtMs: 3_000, durationMs: 250, ok: false, answer: 'timeout' },
    ]);
    const ids = async (limits: typeof all) =>
      (await reads.attempts('aaaaaaaaaa', limits)).map(({ deliveryId }) => deliveryId);
    expect(await ids({ deliveries: 1, maxRead: 10 })).toEqual([newer.id]);
    expect(await ids({ deliveries: 10, maxRead: 2 })).toEqual([newer.id]);
    expect(await reads.attempts('cccccccccc', all)).toEqual([]);
  });

  test('the backlog of a lane is its own, counted up to the limit, with when the first is due', async () => {
    const mine = Array.from({ length: 5 }, (_, n) => newDelivery(n, { createdAtMs: 1_000 + n }));
    const { queue, reads } = await opened(...mine, newDelivery(1, { prefix: 'bbbbbbbbbb' }));
    expect(await reads.backlog(9, 'aaaaaaaaaa')).toEqual({
      pending: 5,
      held: 0,
      failingLanes: 0,
      nextDueAtMs: 1_000,
    });
    expect(await reads.backlog(3, 'aaaaaaaaaa')).toMatchObject({ pending: 3 });
    await queue.report((await claimed(queue, 'aaaaaaaaaa')).map(held));
    const none = { failingLanes: 0, nextDueAtMs: undefined };
    expect(await reads.backlog(9, 'aaaaaaaaaa')).toEqual({ ...none, pending: 0, held: 5 });
    expect(await reads.backlog(9, 'cccccccccc')).toEqual({ ...none, pending: 0, held: 0 });
  });
}
