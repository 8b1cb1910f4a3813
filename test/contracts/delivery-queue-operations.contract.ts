import { describe, expect, test } from 'vitest';
import type { ClaimedDelivery, NewDelivery } from '../../src/push/queue/delivery.ts';
import { delivered, newDelivery, retryAt } from '../support/deliveries/deliveries.ts';
import { countByState } from '../support/deliveries/listed.ts';
import { openQueue, type QueueUnderTest } from '../support/deliveries/queue-under-test.ts';
import { sampleRecord } from '../support/transactions/records.ts';

/** The contract of changes to deliveries other than attempts. `open` returns an empty log, which the suite closes. */
export function deliveryQueueOperationsContract(open: () => Promise<QueueUnderTest>): void {
  const opened = (...enqueued: readonly NewDelivery[]) => openQueue(open, enqueued);
  const one = newDelivery(1);
  const many = (count: number, overrides: Partial<NewDelivery> = {}): NewDelivery[] =>
    Array.from({ length: count }, (_, n) => newDelivery(n, overrides));

  describe('the end of open deliveries', () => {
    test('by a withdrawal is that of several transactions as one after the other', async () => {
      const { queue, stateOf } = await opened(newDelivery(1), newDelivery(2), newDelivery(3));
      await queue.change({ kind: 'withdraw', transactionIds: [1, 3, 4, 3] }, 2_000);
      expect(await countByState(queue)).toMatchObject({ withdrawn: 2, pending: 1 });
      expect(await stateOf(newDelivery(2))).toBe('pending');
      await queue.enqueue([newDelivery(4)]);
      expect(await stateOf(newDelivery(4))).toBe('withdrawn');
    });

    test('of a lane is that of more than one batch', async () => {
      const { queue } = await opened(...many(1_100));
      expect(await queue.change({ kind: 'end lane', prefix: one.prefix, reason: 'removed' }, 2_000)).toBe(
        1_100,
      );
      expect(await countByState(queue)).toMatchObject({ pending: 0, failed: 1_100 });
    });
  });

  describe('a redaction', () => {
    test('takes the driver out of every record of a transaction, and what receivers said, and leaves the rest', async () => {
      const record = sampleRecord({ id: 1, pump: 'photos/1', mobileNumber: '"+15550100"' });
      const [first, second] = [newDelivery(1, { record }), newDelivery(1, { prefix: 'bbbbbbbbbb' })];
      const { queue, claim, stateOf } = await opened(first, second, newDelivery(2));
      const claims = (await claim(1_000)) as ClaimedDelivery[];
      const claimed = claims.find(({ transactionId }) => transactionId === 1) as ClaimedDelivery;
      const said = { status: 503, headers: { 'x-for': 'x' }, body: 'no x' };
      const outcome = { ok: false, kind: 'status', detail: '', answer: said } as const;
      await queue.report([retryAt(claimed, 1_000, 2_000, outcome)]);
      expect(await queue.change({ kind: 'redact', transactionId: 1 }, 2_000)).toBe(2);
      const redacted = sampleRecord({ id: 1, pump: 'photos/1', driverName: '"REDACTED"' });
      for (const { id } of [first, second])
        expect(await queue.find(id)).toMatchObject({ state: 'pending', record: redacted });
      const [attempt] = (await queue.find(claimed.id))?.attempts ?? [];
      expect(attempt?.outcome.answer).toEqual({ status: 503, headers: {}, body: '' });
      expect((await queue.find(newDelivery(2).id))?.record).toEqual(newDelivery(2).record);
      expect(await queue.change({ kind: 'redact', transactionId: 1 }, 2_000)).toBe(0);
      expect(await queue.change({ kind: 'redact', transactionId: 99 }, 2_000)).toBe(0);
      const due = (await claim(9_000)) as ClaimedDelivery[];
      expect(due.find(({ id }) => id === first.id)?.record).toEqual(redacted);
      expect(await stateOf(first)).toBe('pending');
    });

    test('leaves an erased record empty', async () => {
      const { queue } = await opened(one);
      await queue.change({ kind: 'erase', transactionId: 1 }, 2_000);
      expect(await queue.change({ kind: 'redact', transactionId: 1 }, 2_000)).toBe(0);
      expect((await queue.find(one.id))?.record).toBe('');
    });
  });

  describe('a withdrawal', () => {
    test('by an erasure also empties the records, of what was delivered too', async () => {
      const { queue, claim, stateOf } = await opened(one);
      const [claimed] = (await claim(1_000)) as [ClaimedDelivery];
      await queue.report([delivered(claimed, 1_000)]);
      await queue.change({ kind: 'erase', transactionId: 1 }, 2_000);
      expect((await queue.find(one.id))?.record).toBe('');
      expect(await stateOf(one)).toBe('delivered');
      expect(await queue.redeliver(one, { force: true, dueAtMs: 5_000 })).toBe('withdrawn');
    });

    test('by an erasure leaves nothing of what the receiver said, before it or after, nor of a late record', async () => {
      const { queue, claim } = await opened(one, newDelivery(1, { prefix: 'bbbbbbbbbb' }));
      const [a, b] = (await claim(1_000)) as [ClaimedDelivery, ClaimedDelivery];
      const said = { status: 503, headers: { 'x-for': 'Sam' }, body: 'no Sam' };
      const outcome = { ok: false, kind: 'status', detail: '', answer: said } as const;
      await queue.report([retryAt(a, 1_000, 2_000, outcome)]);
      const [again] = (await claim(2_000)) as [ClaimedDelivery];
      await queue.change({ kind: 'erase', transactionId: 1 }, 2_100);
      await queue.report([retryAt(again, 2_000, 3_000, outcome)]);
      await queue.report([delivered(b, 1_000, { ok: true, answer: { ...said, status: 200 } })]);
      const late = newDelivery(1, { prefix: 'cccccccccc' });
      await queue.enqueue([late]);
      const all = await Promise.all([a, b, late].map(({ id }) => queue.find(id)));
      expect(all.map((found) => found?.state)).toEqual(['withdrawn', 'delivered', 'withdrawn']);
      const answers = all.flatMap((found) => found?.attempts.map((attempt) => attempt.outcome.answer));
      const nothing = { headers: {}, body: '' };
      expect(answers).toEqual([
        { status: 503, ...nothing },
        { status: 503, ...nothing },
        { status: 200, ...nothing },
      ]);
      for (const found of all) expect(found?.record).toBe('');
    });
  });
}
