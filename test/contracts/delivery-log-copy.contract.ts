import { describe, expect, onTestFinished, test } from 'vitest';
import type {
  Attempt,
  ClaimedDelivery,
  LaneStreak,
  NewDelivery,
  StoredDelivery,
} from '../../src/push/queue/delivery.ts';
import type { DeliveryQueue, LogContent } from '../../src/push/queue/delivery-queue.ts';
import {
  attemptOf,
  claimOptions,
  delivered,
  failed,
  held,
  newDelivery,
  retryAt,
} from '../support/deliveries/deliveries.ts';
import { countByState, listed } from '../support/deliveries/listed.ts';

/** Reading a whole log and writing it elsewhere. `open` gives an empty log; the suite closes its queue. */
export function deliveryLogCopyContract(open: () => Promise<{ readonly queue: DeliveryQueue }>): void {
  const opened = async (): Promise<DeliveryQueue> => {
    const { queue } = await open();
    onTestFinished(() => queue.close());
    return queue;
  };

  describe('a delivery log, read and written whole', () => {
    test('returns every delivery with its state and attempts, in order of transaction', async () => {
      const queue = await opened();
      const deliveries = await inEveryState(queue);
      const read = await allStored(queue);
      expect(read.map(({ id }) => id)).toEqual(deliveries.map(({ id }) => id));
      for (const { endedAtMs, ...delivery } of read) {
        expect(delivery).toEqual(await queue.find(delivery.id));
        expect(endedAtMs === null).toBe(delivery.state === 'pending' || delivery.state === 'held');
      }
      const ends = read.filter(({ state }) => state === 'delivered').map(({ endedAtMs }) => endedAtMs);
      expect(ends).toEqual([2_250]);
    });

    test('is the same in an empty log as in its own', async () => {
      const [source, target] = [await opened(), await opened()];
      await inEveryState(source);
      await copy(source, target);
      expect(await contentOf(target)).toEqual(await contentOf(source));
      for (const filter of [{}, { state: 'failed' }, { transactionId: 3 }, { prefix: OTHER }] as const) {
        expect(await countByState(target, filter)).toEqual(await countByState(source, filter));
        expect(await listed(target, filter)).toEqual(await listed(source, filter));
      }
      expect(await target.heldAccounts()).toEqual(await source.heldAccounts());
      expect(await target.health(OTHER)).toMatchObject({ failedInARow: 1, failingSinceMs: 2_250 });
      expect(await target.nextDueAtMs()).toBe(await source.nextDueAtMs());
    });

    test('continues in the other log: what was due is due, what has ended is not sent again', async () => {
      const [source, target] = [await opened(), await opened()];
      const deliveries = await inEveryState(source);
      await copy(source, target);
      await target.enqueue(deliveries);
      expect(await contentOf(target)).toEqual(await contentOf(source));
      const due = await target.claim(claimOptions(1_000_000));
      expect(due.map(({ transactionId, attemptNumber }) => [transactionId, attemptNumber]).sort()).toEqual([
        [4, 2], // due again after a failed attempt
        [6, 1], // its lease in the source does not count here
        [7, 1],
      ]);
      expect(await target.resume(8, 1_000_001)).toBe(1);
      expect(await target.claim(claimOptions(1_000_001))).toHaveLength(1);
      const late = newDelivery(5, { prefix: OTHER });
      await target.enqueue([late]);
      expect((await target.find(late.id))?.state).toBe('withdrawn');
    });

    test('is the same after it was stored twice, and takes the last that was stored', async () => {
      const [source, target] = [await opened(), await opened()];
      const [one] = await inEveryState(source);
      await copy(source, target);
      const [pending] = await source.claim(claimOptions(1_000_000, { limit: 1 }));
      await source.report([delivered(pending as ClaimedDelivery, 1_000_000)]);
      await source.redeliver((one as NewDelivery).id, { force: true, dueAtMs: 1_000_500 });
      await source.resetHealth(OTHER, 1_000_500);
      await copy(source, target);
      await copy(source, target);
      expect(await contentOf(target)).toEqual(await contentOf(source));
      expect(await target.nextDueAtMs()).toBe(await source.nextDueAtMs());
    });

    test('makes a claim void when its delivery is stored', async () => {
      const queue = await opened();
      const delivery = newDelivery(1);
      await queue.enqueue([delivery]);
      const [before] = await allStored(queue);
      const [claimed] = await queue.claim(claimOptions(2_000, { leaseMs: 60_000 }));
      await queue.store({ deliveries: [{ ...(before as StoredDelivery), position: 77 }] });
      await queue.report([retryAt(claimed as ClaimedDelivery, 2_000, 30_000)]);
      expect(await queue.find(delivery.id)).toMatchObject({ attempts: [], dueAtMs: 1_000, position: 77 });
      expect(await queue.claim(claimOptions(2_001))).toHaveLength(1);
    });

    test('keeps the newest 50 attempts of a delivery that another log has more of', async () => {
      const queue = await opened();
      const delivery = newDelivery(1);
      const [claimed] = await queue.enqueue([delivery], claimOptions(1_000));
      await queue.report([delivered(claimed as ClaimedDelivery, 1_000)]);
      const [stored] = (await allStored(queue)) as [StoredDelivery];
      const [attempt] = stored.attempts as [Attempt];
      const attempts = Array.from({ length: 51 }, (_, n) => ({ ...attempt, cycle: n + 1 }));
      await queue.store({ deliveries: [{ ...stored, cycle: 51, attempts: attempts.slice(1) }] });
      expect((await queue.find(delivery.id))?.attempts).toEqual(attempts.slice(1));
      await queue.store({ deliveries: [{ ...stored, cycle: 51, attempts }] });
      expect((await queue.find(delivery.id))?.attempts).toEqual(attempts.slice(1));
    });

    test('is read in batches of a few MiB where its deliveries are large', async () => {
      const queue = await opened();
      const record = { ...newDelivery(0).record, head: 'x'.repeat(100_000) };
      const deliveries = Array.from({ length: 60 }, (_, n) => newDelivery(n, { record }));
      await queue.enqueue(deliveries);
      const sizes: number[] = [];
      for await (const batch of batchesOf(queue)) sizes.push(batch.length);
      expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(60);
      expect(Math.max(...sizes)).toBeLessThan(25);
    });

    test('is read in batches by transaction, each delivery once, also after any of them', async () => {
      const queue = await opened();
      const deliveries = Array.from({ length: 1_203 }, (_, n) => newDelivery(n));
      await queue.enqueue(deliveries.toReversed());
      const ids = deliveries.map(({ id }) => id);
      const read = async (after?: number): Promise<string[]> =>
        (await allStored(queue, after)).map(({ id }) => id);
      expect(await read()).toEqual(ids);
      for (const at of [0, 499, 500, 1_201, 1_202]) expect(await read(at)).toEqual(ids.slice(at + 1));
      let batches = 0;
      for await (const batch of batchesOf(queue)) {
        expect(batch.length).toBeGreaterThan(0);
        batches++;
      }
      expect(batches).toBeGreaterThan(1);
    });

    test('is read with all deliveries of a transaction in one batch', async () => {
      const queue = await opened();
      const prefixes = ['aaaaaaaaaa', OTHER, 'cccccccccc'];
      const deliveries = Array.from({ length: 1_203 }, (_, n) =>
        newDelivery(Math.floor(n / 3), { prefix: prefixes[n % 3] as string }),
      );
      await queue.enqueue(deliveries);
      const seen = new Set<number>();
      for await (const batch of batchesOf(queue)) {
        const ids = new Set(batch.map(({ transactionId }) => transactionId));
        expect(batch).toHaveLength(ids.size * 3);
        expect(ids.isDisjointFrom(seen)).toBe(true);
        for (const id of ids) seen.add(id);
      }
      expect(seen.size).toBe(401);
    });

    test('returns every withdrawal once, however many', async () => {
      const [source, target] = [await opened(), await opened()];
      const ids = Array.from({ length: 1_203 }, (_, n) => n * 3);
      await source.store({ withdrawn: ids });
      await copy(source, target);
      expect((await contentOf(target)).withdrawn).toEqual(ids);
    });
  });

  describe('the name of a delivery log', () => {
    const name = { id: 'e4f2cf5e-8d1e-4c2f-9a3a-2f1de1a3b111', startedAtMs: 123_456 };

    test('is taken over by an empty log, and again without a change', async () => {
      const queue = await opened();
      await queue.store({ name });
      expect(await queue.logId()).toEqual(name);
      await queue.enqueue([newDelivery(1)]);
      await queue.store({ name });
      expect(await queue.logId()).toEqual(name);
    });

    test('is not taken from a log that holds deliveries', async () => {
      const queue = await opened();
      const own = await queue.logId();
      await queue.enqueue([newDelivery(1)]);
      await expect(queue.store({ name })).rejects.toMatchObject({ code: 'REFUSED' });
      expect(await queue.logId()).toEqual(own);
    });
  });
}

const OTHER = 'bbbbbbbbbb';
const HEALTHY = { failedInARow: 0, failingSinceMs: null, lastAnswers: [] };

/** Transactions 1 to 8, a delivery each; 5 was withdrawn, and 6 is claimed for a short while. */
async function inEveryState(queue: DeliveryQueue): Promise<readonly NewDelivery[]> {
  const record = { head: '{', mobileNumber: '+1', fees: '{}', pump: null, odometer: 'o' };
  const deliveries = [1, 2, 3, 4, 5, 6, 7, 8].map((n) =>
    newDelivery(n, {
      createdAtMs: 1_000 + n,
      ...(n === 2 && { accountId: 8 }),
      ...(n === 3 && { prefix: OTHER, type: 'transaction.external' }),
      ...(n === 7 && { record }),
    }),
  );
  const of = (...transactions: readonly number[]) =>
    deliveries.filter(({ transactionId }) => transactions.includes(transactionId));
  const claiming = { holder: 'one', leaseMs: 5_000, laneCapacity: () => 100 };
  const claimed = await queue.enqueue(of(1, 2, 3, 4, 8), { ...claiming, nowMs: 2_000 });
  const claimOf = (transaction: number): ClaimedDelivery => {
    const found = claimed.find(({ transactionId }) => transactionId === transaction);
    if (found === undefined) throw new Error(`transaction ${transaction} was not claimed`);
    return found;
  };
  const unknownHost = { ok: false, kind: 'dns', detail: 'none', answer: null } as const;
  const attempt = { ...attemptOf(claimOf(8), 2_000, unknownHost), durationMs: 0.125 };
  await queue.report([
    delivered(claimOf(1), 2_000),
    held(claimOf(2)),
    failed(claimOf(3), 2_000),
    retryAt(claimOf(4), 2_000, 32_000),
    { ...failed(claimOf(8), 2_000), kind: 'failed', attempt, reason: 'x' },
  ]);
  await queue.enqueue(of(5, 7));
  await queue.withdraw([5], 2_500);
  await queue.enqueue(of(6), { ...claiming, nowMs: 3_000 });
  return deliveries;
}

async function copy(source: DeliveryQueue, target: DeliveryQueue): Promise<void> {
  const { deliveries, withdrawn, streaks } = await contentOf(source);
  const former = (await contentOf(target)).streaks.map(({ prefix }) => ({ prefix, ...HEALTHY }));
  await target.store({ withdrawn });
  await target.store({ deliveries });
  await target.store({ streaks: former });
  await target.store({ streaks });
}

/** Everything in the log but its name. */
async function contentOf(queue: DeliveryQueue): Promise<Required<Omit<LogContent, 'name'>>> {
  const streaks: readonly LaneStreak[] = await queue.failingLanes(1_000);
  const withdrawn: number[] = [];
  for (let batch = await queue.withdrawnAfter(-1); batch.length > 0; ) {
    withdrawn.push(...batch);
    batch = await queue.withdrawnAfter(withdrawn.at(-1) ?? 0);
  }
  const byPrefix = streaks.toSorted((a, b) => (a.prefix < b.prefix ? -1 : 1));
  return { deliveries: await allStored(queue), withdrawn, streaks: byPrefix };
}

async function* batchesOf(queue: DeliveryQueue, from = -1): AsyncGenerator<readonly StoredDelivery[]> {
  for (let batch = await queue.storedAfter(from); batch.length > 0; ) {
    yield batch;
    batch = await queue.storedAfter(batch.at(-1)?.transactionId ?? from);
  }
}

async function allStored(queue: DeliveryQueue, from?: number): Promise<StoredDelivery[]> {
  const all: StoredDelivery[] = [];
  for await (const batch of batchesOf(queue, from)) all.push(...batch);
  return all;
}
