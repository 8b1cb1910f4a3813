import { describe, expect, onTestFinished, test } from 'vitest';
import type { NewDelivery } from '../../src/push/queue/delivery.ts';
import type { DeliveryFilter, DeliveryPlace, DeliveryQueue } from '../../src/push/queue/delivery-queue.ts';
import {
  answered,
  claimFrom,
  claimOptions,
  delivered,
  failed,
  newDelivery,
  retryAt,
} from '../support/deliveries/deliveries.ts';
import { listed } from '../support/deliveries/listed.ts';

/** The contract of reads that the service repeats on the delivery log. `open` returns an empty log. */
export function boundedReadsContract(open: () => Promise<{ readonly queue: DeliveryQueue }>): void {
  const opened = async (...enqueued: readonly NewDelivery[]) => {
    const { queue } = await open();
    onTestFinished(() => queue.close());
    await queue.enqueue(enqueued);
    return { queue, reads: queue };
  };
  const claimed = async (queue: DeliveryQueue, prefix?: string) =>
    claimFrom(queue, claimOptions(9_000, { laneCapacity: (lane) => ((prefix ?? lane) === lane ? 100 : 0) }));

  /** Twenty deliveries of two accounts, one of two keys, several in a millisecond. Even transactions were delivered. */
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
    { transactionIds: [4] },
    { sinceMs: 1_001, untilMs: 1_003 },
    ...(['pending', 'delivered', 'failed'] as const).flatMap((state) => [
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
      expect(next).toMatchObject({ createdAtMs: expect.any(Number), prefix: expect.any(String) });
    });
  });

  test.each([1, 2, 5])(
    'a page of %d that ends with the last delivery has no next, even if a block of reading ends there too',
    async (limit) => {
      const many = Array.from({ length: 100 }, (_, n) => newDelivery(n, { createdAtMs: 1_000 + n }));
      const { queue, reads } = await opened(...many);
      const oldest = (await claimed(queue)).filter(({ transactionId }) => transactionId < limit);
      await queue.report(oldest.map((claim) => delivered(claim, 2_000)));
      const { deliveries, next } = await reads.page({ state: 'delivered' }, { limit });
      expect([deliveries.length, next]).toEqual([limit, undefined]);
    },
  );

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
    await queue.change({ kind: 'enabled', prefix: 'cccccccccc', atMs: 1e9 }, 1e9);
    expect((await reads.failingLanes(5)).map((lane) => lane.prefix)).toEqual(['bbbbbbbbbb', 'aaaaaaaaaa']);
  });

  describe('the lanes with something due', () => {
    const lanesOf = async (
      queue: DeliveryQueue,
      options: Omit<Parameters<typeof queue.dueLanes>[0], 'nowMs'>,
    ) => {
      const { lanes, ...rest } = await queue.dueLanes({ nowMs: 1_010, ...options });
      return { ...rest, heads: lanes.map((lane) => Object.values(lane).join(' ')).toSorted() };
    };

    test('are all of them while few deliveries are due, each with the one that is due first', async () => {
      const { queue } = await opened(
        newDelivery(1, { createdAtMs: 1_005 }),
        newDelivery(2, { createdAtMs: 1_003 }),
        newDelivery(1, { prefix: 'bbbbbbbbbb', createdAtMs: 1_010 }),
        newDelivery(1, { prefix: 'cccccccccc', createdAtMs: 1_011 }),
      );
      const heads = ['aaaaaaaaaa 2 1003', 'bbbbbbbbbb 1 1010'];
      expect(await lanesOf(queue, { limit: 10 })).toEqual({ heads, isAll: true, next: undefined });
      await claimed(queue, 'aaaaaaaaaa');
      expect((await lanesOf(queue, { limit: 10 })).heads).toEqual(['bbbbbbbbbb 1 1010']);
    });

    test('are found behind the backlog of another lane: those that are asked for, and the next ones in turn', async () => {
      const backlog = Array.from({ length: 5 }, (_, n) => newDelivery(n, { accountId: 1 }));
      const others = ['bbbbbbbbbb', 'cccccccccc', 'dddddddddd', 'eeeeeeeeee'].map((prefix, n) =>
        newDelivery(n, { prefix, accountId: 2 + n, createdAtMs: n === 1 ? 2_000 : 1_005 + n }),
      );
      const { queue } = await opened(...backlog, ...others);
      const first = await lanesOf(queue, { limit: 2, prefixes: ['eeeeeeeeee', 'ffffffffff'] });
      expect(first.heads).toEqual(['aaaaaaaaaa 0 1000', 'bbbbbbbbbb 0 1005', 'eeeeeeeeee 3 1008']);
      expect(first.next).toEqual({ accountId: 2, prefix: 'bbbbbbbbbb' });
      const second = await lanesOf(queue, { limit: 2, after: first.next });
      expect(second.heads).toEqual(['aaaaaaaaaa 0 1000', 'dddddddddd 2 1007']);
      const last = await lanesOf(queue, { limit: 2, after: second.next });
      expect(last).toEqual({
        heads: ['aaaaaaaaaa 0 1000', 'eeeeeeeeee 3 1008'],
        isAll: false,
        next: undefined,
      });
    });
  });

  test('a lane waits as long as the answer to one of its retries has asked', async () => {
    const { queue } = await opened(...[1, 2, 3].map((n) => newDelivery(n)));
    const [one, two, three] = await claimed(queue);
    if (!one || !two || !three) throw new Error('three deliveries were to be claimed');
    const asked = () => queue.askedToWaitUntil('aaaaaaaaaa', 10_000);
    await queue.report([retryAt(one, 9_000, 40_000)]);
    expect(await asked()).toBeUndefined();
    await queue.report([retryAt(two, 9_000, 70_000, answered(503, '60')), delivered(three, 9_000)]);
    expect(await asked()).toBe(69_250);
    expect(await queue.askedToWaitUntil('aaaaaaaaaa', 69_250)).toBeUndefined();
    expect(await queue.askedToWaitUntil('bbbbbbbbbb', 10_000)).toBeUndefined();
  });

  describe('the backlog', () => {
    const at = (nowMs: number, limit = 100) => ({ nowMs, limit });
    const NONE = { pending: 0, underWay: 0, waiting: 0, failingLanes: 0, nextDueAtMs: undefined };

    test('counts what is open and the lanes with a failure streak, each up to the limit', async () => {
      const mine = Array.from({ length: 6 }, (_, n) => newDelivery(n));
      const other = { prefix: 'bbbbbbbbbb', accountId: 8 };
      const { queue, reads } = await opened(...mine, newDelivery(1, other), newDelivery(2, other));
      expect(await reads.backlog(at(999))).toEqual({ ...NONE, pending: 8, nextDueAtMs: 1_000 });
      expect(await reads.backlog(at(1_000))).toMatchObject({ pending: 8, underWay: 0, waiting: 8 });
      const claims = (await claimed(queue)).toSorted((x, y) => x.prefix.localeCompare(y.prefix));
      expect(await reads.backlog(at(9_000))).toMatchObject({ pending: 8, underWay: 8, waiting: 0 });
      const [a, b, c, d, e] = claims;
      const last = claims.at(-1);
      if (!a || !b || !c || !d || !e || !last) throw new Error('eight were to be claimed');
      await queue.report([b, c, d].map((claim) => delivered(claim, 1_000)));
      await queue.report([failed(a, 1_000), failed(last, 1_000)]);
      expect(await reads.backlog(at(9_000))).toMatchObject({ pending: 3, failingLanes: 2 });
      await queue.report([delivered(e, 2_000)]);
      expect(await reads.backlog(at(9_000, 1))).toMatchObject({ pending: 1, failingLanes: 1 });
    });

    test('of a lane is its own: what is due later or ended does not wait, a claim whose lease ended does', async () => {
      const mine = Array.from({ length: 5 }, (_, n) => newDelivery(n, { createdAtMs: 1_000 + n }));
      const { queue, reads } = await opened(...mine, newDelivery(1, { prefix: 'bbbbbbbbbb' }));
      const of = (nowMs: number, prefix = 'aaaaaaaaaa', limit = 9) => reads.backlog({ nowMs, limit, prefix });
      expect(await of(1_002)).toEqual({ ...NONE, pending: 5, waiting: 3, nextDueAtMs: 1_000 });
      expect(await of(1_002, 'aaaaaaaaaa', 2)).toMatchObject({ pending: 2, waiting: 2 });
      const [one, two, three, four] = await claimed(queue, 'aaaaaaaaaa');
      if (!one || !two || !three || !four) throw new Error('five deliveries were to be claimed');
      expect(await of(9_000)).toMatchObject({ pending: 5, underWay: 5, waiting: 0 });
      await queue.report([
        retryAt(one, 9_000, 40_000),
        delivered(two, 9_000),
        delivered(three, 9_000),
        failed(four, 9_000),
      ]);
      expect(await of(9_000)).toMatchObject({ underWay: 1, waiting: 0, failingLanes: 1 });
      expect(await of(14_001)).toMatchObject({ underWay: 0, waiting: 1 });
      expect(await of(40_000)).toMatchObject({ underWay: 0, waiting: 2 });
      expect(await of(9_000, 'cccccccccc')).toEqual(NONE);
    });
  });
}
