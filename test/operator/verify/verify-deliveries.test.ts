import { describe, expect, test } from 'vitest';
import type { DomainEvent } from '../../../src/domain/events.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import { type RecordedEvent, Unreadable } from '../../../src/event-store/recorded-event.ts';
import { deliveryId } from '../../../src/push/message/envelope.ts';
import { keyIssued, onKey, opened, PREFIX, webhookSet } from '../../support/accounts/account-samples.ts';
import { AFTER_URL, DAY_MS, range, startVerifying } from '../../support/agreement/verifying.ts';
import { claimFrom, claimOptions, delivered } from '../../support/deliveries/deliveries.ts';
import { listed } from '../../support/deliveries/listed.ts';
import { interposed, replacing } from '../../support/interposed.ts';
import { confirmed, external, voided } from '../../support/transactions/e2e-samples.ts';

describe('verifying deliveries', () => {
  test('reports what is owed but not in the log; a repair stores it, due at once', async () => {
    const { append, confirm, verify, repairMissing, queue, clock } = await startVerifying();
    await confirm(1);
    await append('transaction-2', external(2, AFTER_URL));
    expect(await verify()).toMatchObject({
      owed: 2,
      missing: [{ transactionId: 1 }, { transactionId: 2 }],
      surplus: [],
    });
    expect(await repairMissing()).toBe(2);
    const agreement = await verify();
    expect(agreement).toMatchObject({ owed: 2, missing: [], surplus: [], notJudged: 0 });
    expect(agreement.states).toEqual({ pending: 2, delivered: 0, failed: 0, withdrawn: 0 });
    expect(await queue.backlog({ nowMs: clock.now(), limit: 10 })).toMatchObject({ waiting: 2 });
    expect(await repairMissing()).toBe(0);
  });

  test('finds nothing owed if the fan-out would send nothing', async () => {
    const { account, confirm, verify } = await startVerifying();
    await confirm(1, { created_at: '2026-08-31T23:59:59.999Z' }); // before the URL was set
    await account(onKey('WebhookDisabled'));
    await confirm(2);
    await account(onKey('WebhookEnabled'), onKey('KeySwitchedOff'));
    await confirm(3);
    await account(onKey('KeySwitchedOn'));
    await confirm(4);
    expect(await verify()).toMatchObject({ owed: 1, missing: [{ transactionId: 4, prefix: PREFIX }] });
  });

  test('decides as of the event: what was owed then stays owed', async () => {
    const { account, confirm, verify } = await startVerifying();
    await confirm(1);
    await account(onKey('WebhookRemoved'));
    expect(await verify()).toMatchObject({ owed: 1 });
  });

  test('does not report what the fan-out stores a moment later', async () => {
    const { confirm, verify, owed, queue } = await startVerifying();
    await confirm(1);
    let reads = 0;
    const late = interposed(queue, ['page'], () => {
      if (++reads === 1) setTimeout(() => void queue.enqueue([owed(1)]), 20);
    });
    expect(await verify({ queue: late, settleMs: 150 })).toMatchObject({
      missing: [],
      states: { pending: 1 },
    });
  });

  test('judges nothing that depends on a damaged event of the transaction or its account', async () => {
    const { confirm, verify, repairMissing, queue } = await startVerifying();
    await confirm(1);
    await repairMissing();
    const delivery = await queue.find((await listed(queue))[0]?.id ?? '');
    if (delivery === undefined) throw new Error('nothing was stored');
    await queue.enqueue([{ ...delivery, id: 'surplus', transactionId: 99 }]);
    await confirm(2);
    const found = async (stream: string | undefined) => {
      const event = stream === undefined ? undefined : { stream, revision: 0 };
      const { missing, surplus, notJudged } = await verify({ damaged: { event } });
      return [missing.length, surplus.length, notJudged];
    };
    expect(await found('transaction-5')).toEqual([1, 1, 0]);
    expect(await found('transaction-2')).toEqual([0, 1, 1]);
    expect(await found('transaction-99')).toEqual([1, 0, 0]);
    // The delivery of transaction 1 is there, so that there is nothing to judge.
    expect(await found('account-7')).toEqual([0, 0, 1]);
    expect(await found(undefined)).toEqual([0, 0, 1]);
  });

  test.each([1, 100])(
    'judges nothing of a transaction with a damaged later event, which may have voided it, in blocks of %i',
    async (blockSize) => {
      const { append, verify, store } = await startVerifying();
      await append('transaction-1', confirmed(1, AFTER_URL), voided(1));
      const unreadable = (event: RecordedEvent): RecordedEvent =>
        event.stream === 'transaction-1' && event.revision === 1
          ? { ...event, data: new Unreadable('no text', { isDamage: true }) }
          : event;
      const damaged = replacing(store, {
        readStreams: async (streams) =>
          (await store.readStreams(streams)).map((events) => events.map(unreadable)),
        async *subscribe(options) {
          for await (const batch of store.subscribe(options))
            yield { ...batch, events: batch.events.map(unreadable) };
        },
      });
      expect(await verify({ blockSize })).toMatchObject({ owed: 1, missing: [{ transactionId: 1 }] });
      expect(await verify({ blockSize, store: damaged })).toMatchObject({
        owed: 0,
        missing: [],
        notJudged: 1,
      });
    },
  );

  test('reports a delivery whose key or account was changed in the store as surplus, and the owed one as missing', async () => {
    const { queue, verify, repair, confirm, owed } = await startVerifying();
    for (const id of [1, 2, 3]) await confirm(id);
    await queue.enqueue([owed(1, { prefix: 'klmnopqrst' }), owed(2, { accountId: 8 }), owed(3)]);
    const { missing, surplus, states } = await verify();
    expect(missing).toMatchObject([
      { id: deliveryId(PREFIX, 1), prefix: PREFIX, transactionId: 1 },
      { id: deliveryId(PREFIX, 2), prefix: PREFIX, transactionId: 2 },
    ]);
    expect(surplus).toMatchObject([
      { id: deliveryId(PREFIX, 1), prefix: 'klmnopqrst' },
      { id: deliveryId(PREFIX, 2), accountId: 8 },
    ]);
    expect(states.pending).toBe(1);
    // Another key is owed another one, and a key is owed one of a transaction, whatever account it has in the log.
    expect(await repair(missing)).toEqual({ stored: 1, sent: 1 });
    expect((await verify()).missing).toHaveLength(1);
  });

  test('accepts deliveries of a transaction that has been erased', async () => {
    const { confirm, verify, repairMissing, store } = await startVerifying();
    await confirm(1);
    await repairMissing();
    await store.erase('transaction-1');
    expect(await verify()).toMatchObject({ owed: 0, missing: [], surplus: [] });
  });

  test('does not judge what was recorded beyond the retention, or before the log began', async () => {
    const { confirm, verify, clock } = await startVerifying();
    await confirm(1);
    clock.advance(2 * DAY_MS);
    await confirm(2);
    const dayOld = { logStartedAtMs: 0, retentionMs: DAY_MS };
    expect(await verify(dayOld)).toMatchObject({ owed: 1, missing: [{ transactionId: 2 }], notJudged: 1 });
    expect(await verify({ logStartedAtMs: clock.now() })).toMatchObject({ owed: 1, notJudged: 1 });
  });

  test('judges only one account or a range of time if asked to', async () => {
    const { confirm, verify, clock, repairMissing } = await startVerifying();
    await confirm(1);
    await repairMissing();
    clock.advance(1_000);
    const sinceMs = clock.now();
    await confirm(2);
    expect(await verify({ sinceMs })).toMatchObject({
      owed: 1,
      missing: [{ transactionId: 2 }],
      surplus: [],
    });
    expect(await verify({ untilMs: sinceMs - 1 })).toMatchObject({ owed: 1, missing: [], surplus: [] });
    expect(await verify({ accountId: 8 })).toMatchObject({ owed: 0, missing: [], surplus: [], notJudged: 0 });
  });

  test('does not judge an account that cannot be read', async () => {
    const { confirm, verify, append, repairMissing } = await startVerifying();
    await confirm(1);
    await repairMissing();
    await append('account-7', { type: 'AccountFrozen', data: {} });
    await confirm(2);
    expect(await verify()).toMatchObject({ owed: 1, missing: [], surplus: [], notJudged: 1 });
  });

  test('judges by the time in the metadata, which a copy keeps', async () => {
    const { verify, store, author, clock } = await startVerifying();
    /** Recorded now, with metadata that says it was recorded then. */
    const copy = async (id: number, recordedAtMs: number) => {
      const event = newEvent(confirmed(id, AFTER_URL) as unknown as DomainEvent, author, recordedAtMs);
      await store.append([{ stream: `transaction-${id}`, expected: 'none', events: [event] }]);
    };
    const nowMs = clock.now();
    await copy(1, nowMs - DAY_MS);
    await copy(2, nowMs - DAY_MS - 1);
    const dayOld = { retentionMs: DAY_MS, logStartedAtMs: 0 };
    expect(await verify(dayOld)).toMatchObject({ owed: 1, missing: [{ transactionId: 1 }], notJudged: 1 });
    const since = { logStartedAtMs: nowMs - DAY_MS };
    expect(await verify(since)).toMatchObject({ owed: 1, missing: [{ transactionId: 1 }], notJudged: 1 });
    const asked = { logStartedAtMs: 0, sinceMs: nowMs - DAY_MS - 1, untilMs: nowMs - DAY_MS - 1 };
    expect(await verify(asked)).toMatchObject({ owed: 1, missing: [{ transactionId: 2 }], notJudged: 0 });
  });

  test('includes both ends of the range of time', async () => {
    const { verify, confirm, clock } = await startVerifying();
    await confirm(1);
    const atMs = clock.now();
    expect(await verify({ sinceMs: atMs, untilMs: atMs })).toMatchObject({ owed: 1 });
    expect(await verify({ sinceMs: atMs + 1 })).toMatchObject({ owed: 0 });
    expect(await verify({ untilMs: atMs - 1 })).toMatchObject({ owed: 0 });
  });

  test('counts what is owed by the state it is in', async () => {
    const { verify, confirm, queue, owed, clock } = await startVerifying();
    for (const n of range(5)) await confirm(n);
    await queue.enqueue(range(4).map((n) => owed(n, { createdAtMs: clock.now() })));
    const [first, second] = await claimFrom(queue, claimOptions(clock.now(), { limit: 2 }));
    if (first === undefined || second === undefined) throw new Error('nothing to claim');
    await queue.report([delivered(first, clock.now())]);
    await queue.change({ kind: 'end lane', prefix: 'noSuchLane', reason: 'x' }, clock.now());
    const { states, missing } = await verify();
    expect(states).toEqual({ pending: 3, delivered: 1, failed: 0, withdrawn: 0 });
    expect(missing).toMatchObject([{ transactionId: 5 }]);
  });

  test('reads a log of any length', async () => {
    const { verify, queue, owed } = await startVerifying();
    await queue.enqueue(range(1_003).map((n) => owed(n, { id: `surplus-${n}` })));
    const { surplus } = await verify();
    expect(new Set(surplus.map(({ id }) => id)).size).toBe(1_003);
  });

  test('reports nothing that is recorded and stored after it has read the events', async () => {
    const { verify, confirm, queue, owed } = await startVerifying();
    await confirm(1);
    await queue.enqueue([owed(1)]);
    const walk = queue.transactionsAfter.bind(queue);
    queue.transactionsAfter = async (...args) => {
      queue.transactionsAfter = walk;
      await confirm(2);
      await queue.enqueue([owed(2), owed(3, { id: 'surplus', transactionId: 2, prefix: 'klmnopqrst' })]);
      return walk(...args);
    };
    expect(await verify()).toMatchObject({
      owed: 1,
      missing: [],
      surplus: [{ id: 'surplus' }],
    });
  });

  test('waits a moment for the delivery of what was just recorded', async () => {
    const { verify, confirm, queue, owed } = await startVerifying();
    await confirm(1);
    await confirm(2);
    const verifying = verify({ settleMs: 100, onProgress: () => void queue.enqueue([owed(2)]) });
    expect(await verifying).toMatchObject({
      owed: 2,
      missing: [{ transactionId: 1 }],
      states: { pending: 1 },
    });
  });

  test('judges one account by its own transactions and deliveries', async () => {
    const { verify, confirm, append, account, queue, owed } = await startVerifying();
    const eight = { prefix: 'bbbbbbbbbb', account_id: 8 };
    await account(opened());
    await append('account-8', opened('Eight', 8), keyIssued(eight), webhookSet(eight));
    await confirm(1);
    await append('transaction-2', confirmed(2, { ...AFTER_URL, account_id: 8 }));
    await queue.enqueue([owed(9, { id: 'surplus-7' }), owed(10, { id: 'surplus-8', accountId: 8 })]);
    const of = async (accountId: number) => {
      const { missing, surplus } = await verify({ accountId });
      return [missing.map(({ transactionId }) => transactionId), surplus.map(({ id }) => id)];
    };
    expect(await of(8)).toEqual([[2], ['surplus-8']]);
  });
});
