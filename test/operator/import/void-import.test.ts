import { describe, expect, test } from 'vitest';
import { findImport } from '../../../src/operator/import/import-log.ts';
import { type VoidImportOptions, voidImport } from '../../../src/operator/import/void-import.ts';
import {
  claimFrom,
  claimOptions,
  delivered,
  failed,
  newDelivery,
} from '../../support/deliveries/deliveries.ts';
import { cancelled, confirmed, linesOf, minutely, voided } from '../../support/transactions/e2e-samples.ts';
import { endingAfter, IMPORT_AUTHOR, importAll, startImports } from '../../support/transactions/importing.ts';

async function started(lines = [confirmed(1), confirmed(2), confirmed(3)]) {
  const { store, clock, openQueue, run, typesOf } = startImports();
  const { importId = '' } = await importAll({ store, clock, lines: linesOf(lines) });
  const queue = openQueue();
  const refused: string[] = [];
  const entry = await findImport(store, importId);
  if (entry === undefined) throw new Error('there is no import');
  const voidAll = async (options: Partial<VoidImportOptions> = {}) => {
    const { pushedTo, ...counts } = await voidImport(entry, {
      store,
      queue,
      clock,
      author: IMPORT_AUTHOR,
      reason: 'sent twice',
      onRefused: (what) => void refused.push(what),
      onProgress: () => undefined,
      signal: new AbortController().signal,
      ...options,
    });
    return { ...counts, pushedTo: [...pushedTo] };
  };
  return { store, clock, queue, run, typesOf, voidAll, refused };
}

describe('the void of an import', () => {
  test('voids what is visible of it with the reason, and leaves everything else as it is', async () => {
    const { store, clock, run, typesOf, voidAll } = await started([
      confirmed(1),
      confirmed(2),
      cancelled(2),
      confirmed(3),
    ]);
    await run([confirmed(4), voided(3)]);
    expect(await voidAll()).toEqual({ voided: 1, already: 2, pushed: 0, pushedTo: [] });
    expect((await store.readStream('transaction-1')).at(-1)).toMatchObject({
      type: 'TransactionVoided',
      data: { transaction_id: 1, account_id: 7, reason: 'sent twice' },
      metadata: IMPORT_AUTHOR,
    });
    expect(await typesOf(2)).toEqual(['TransactionConfirmed', 'TransactionCancelled']);
    expect(await typesOf(3)).toEqual(['TransactionConfirmed', 'TransactionVoided']);
    expect(await typesOf(4)).toEqual(['TransactionConfirmed']);
    const head = await store.head();
    clock.advance(1_000);
    expect(await voidAll()).toEqual({ voided: 0, already: 3, pushed: 0, pushedTo: [] });
    expect(await store.head()).toBe(head);
  });

  test('ended between two batches, is continued by the same command', async () => {
    const { store, typesOf, voidAll } = await started(minutely(1_001));
    await expect(voidAll({ store: endingAfter(1, store) })).rejects.toThrow('ended');
    expect([await typesOf(1_000), await typesOf(1_001)].map((types) => types.length)).toEqual([2, 1]);
    expect(await voidAll()).toMatchObject({ voided: 1, already: 1_000 });
    expect(await typesOf(1_001)).toEqual(['TransactionConfirmed', 'TransactionVoided']);
  });

  test('stops between two batches if it is interrupted', async () => {
    const { voidAll } = await started(minutely(1_001));
    const interrupted = new AbortController();
    const onProgress = (): void => interrupted.abort();
    expect(await voidAll({ onProgress, signal: interrupted.signal })).toMatchObject({ voided: 1_000 });
    expect(await voidAll()).toMatchObject({ voided: 1, already: 1_000 });
  });

  test('takes a transaction that another one ends meanwhile for ended', async () => {
    const { store, run, typesOf, voidAll } = await started();
    let isEnded = false;
    const meanwhile: typeof store = {
      ...endingAfter(Number.POSITIVE_INFINITY, store),
      async append(appends) {
        if (!isEnded) await run([cancelled(2)]);
        isEnded = true;
        return store.append(appends);
      },
    };
    expect(await voidAll({ store: meanwhile })).toMatchObject({ voided: 2, already: 1 });
    expect(await typesOf(2)).toEqual(['TransactionConfirmed', 'TransactionCancelled']);
  });

  test('leaves out what was erased, and names what cannot be judged', async () => {
    const { store, voidAll, refused } = await started();
    await store.erase('transaction-1');
    const unreadable = { id: crypto.randomUUID(), type: 'AccountFrozen', data: {}, metadata: {} as never };
    await store.append([{ stream: 'transaction-2', expected: 'any', events: [unreadable] }]);
    expect(await voidAll()).toMatchObject({ voided: 1, already: 0 });
    expect(refused).toEqual(['transaction 2']);
  });

  test('says which receivers have what was voided', async () => {
    const { queue, clock, voidAll } = await started();
    const nowMs = clock.now();
    const [one, two] = ['aaaaaaaaaa', 'bbbbbbbbbb'];
    const of = (transactionId: number, prefix: string) =>
      newDelivery(transactionId, { id: crypto.randomUUID(), prefix, transactionId, createdAtMs: nowMs });
    await queue.enqueue([of(1, one), of(1, two), of(2, one), of(99, one)]);
    const claims = await claimFrom(queue, { ...claimOptions(nowMs), limit: 10 });
    const sent = claims.filter(({ prefix, transactionId }) => prefix === one || transactionId === 1);
    await queue.report(sent.map((claim) => delivered(claim, nowMs)));
    const pushed = {
      pushed: 2,
      pushedTo: [
        [one, 2],
        [two, 1],
      ],
    };
    expect(await voidAll({ dryRun: true })).toEqual({ voided: 3, already: 0, ...pushed });
    expect(await voidAll()).toEqual({ voided: 3, already: 0, ...pushed });
    expect(await voidAll()).toEqual({ voided: 0, already: 3, ...pushed });
  });

  test('counts a receiver that has it, whatever became of its redelivery', async () => {
    const { queue, clock, voidAll } = await started();
    const nowMs = clock.now();
    const deliveries = [1, 2, 3].map((n) => newDelivery(n, { createdAtMs: nowMs }));
    await queue.enqueue(deliveries);
    const [one, two, three] = await claimFrom(queue, claimOptions(nowMs));
    if (!one || !two || !three) throw new Error('three are claimed');
    await queue.report([delivered(one, nowMs), delivered(two, nowMs), failed(three, nowMs)]);
    for (const each of deliveries) await queue.redeliver(each, { force: true, dueAtMs: nowMs });
    expect(await voidAll({ dryRun: true })).toMatchObject({ pushed: 2, pushedTo: [['aaaaaaaaaa', 2]] });
    await queue.change({ kind: 'withdraw', transactionIds: [1] }, nowMs);
    await queue.change(
      { kind: 'end lane', prefix: 'aaaaaaaaaa', reason: 'the redelivery was cancelled', redelivered: true },
      nowMs,
    );
    expect(await voidAll()).toMatchObject({ voided: 3, pushed: 2, pushedTo: [['aaaaaaaaaa', 2]] });
  });

  test('in a dry run says the same and records nothing', async () => {
    const { store, typesOf, voidAll } = await started();
    const head = await store.head();
    expect(await voidAll({ dryRun: true })).toMatchObject({ voided: 3, already: 0 });
    expect(await store.head()).toBe(head);
    expect(await typesOf(1)).toEqual(['TransactionConfirmed']);
  });
});
