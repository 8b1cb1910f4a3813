import { describe, expect, onTestFinished, test } from 'vitest';
import { repairView } from '../../../src/operator/verify/repair-view.ts';
import { projectEvent } from '../../../src/records/project-event.ts';
import { type VerifyViewOptions, verifyView } from '../../support/agreement/verify.ts';
import { openPushStores } from '../../support/deliveries/push-stores.ts';
import { interposed, replacing } from '../../support/interposed.ts';
import { confirmed, external, voided } from '../../support/transactions/e2e-samples.ts';
import { viewInFolder } from '../../support/transactions/open-view.ts';
import { hiding, showing } from '../../support/transactions/records.ts';
import { rowIn } from '../../support/transactions/row-in.ts';

/** Transactions 1 (confirmed), 2 (external) and 3 (voided) in the store, and a view that shows them rightly. */
async function start() {
  const { store, clock, folder, append, author } = openPushStores();
  const view = viewInFolder(folder, clock);
  onTestFinished(() => view.close());
  await append('transaction-1', confirmed(1));
  await append('transaction-2', external(2));
  await append('transaction-3', confirmed(3), voided(3));
  const { generation } = await view.reset('store', 0);
  const streams = await store.readStreams([1, 2, 3].map((id) => `transaction-${id}`));
  await view.apply(streams.flat().map(projectEvent), { generation, position: 10 });
  const verify = (overrides: Partial<VerifyViewOptions> = {}) =>
    verifyView({ store, view, settleMs: 0, ...overrides });
  return { store, view, clock, append, verify, repairing: { store, view, clock, author } };
}

describe('verifying the view', () => {
  test('reports what is missing, differs, or is shown though no event calls for it, and repairs it', async () => {
    const { view, verify, repairing } = await start();
    await view.replace(1, []);
    await view.replace(2, [showing({ id: 2, status: 'EXTERNAL' })]);
    await view.replace(3, [showing({ id: 3 })]);
    await view.replace(99, [showing({ id: 99, accountId: 8 })]);
    const { differences } = await verify();
    expect(differences.toSorted((a, b) => a.transactionId - b.transactionId)).toEqual([
      { transactionId: 1, kind: 'missing' },
      { transactionId: 2, kind: 'differing' },
      { transactionId: 3, kind: 'surplus' },
      { transactionId: 99, kind: 'surplus' },
    ]);
    expect(await repairView(differences, repairing)).toEqual([]);
    expect(await verify()).toMatchObject({ checked: 3, differences: [] });
  });

  test('judges nothing that depends on a damaged event, and nothing at all if that may be any event', async () => {
    const { view, verify } = await start();
    await view.replace(1, []);
    await view.replace(2, []);
    const one = await verify({ damaged: { event: { stream: 'transaction-1', revision: 0 } } });
    expect(one.differences).toEqual([{ transactionId: 2, kind: 'missing' }]);
    expect((await verify({ damaged: { event: undefined } })).differences).toEqual([]);
  });

  test('reports a row that is hidden though nothing voided it', async () => {
    const { view, verify } = await start();
    await view.replace(1, [hiding(1)]);
    expect((await verify()).differences).toEqual([{ transactionId: 1, kind: 'missing' }]);
  });

  test('reports a row at a revision after its last event, which would ignore a later void', async () => {
    const { view, verify, repairing, store } = await start();
    const [first] = (await store.readStream('transaction-1')).map(projectEvent);
    if (first === undefined || !('change' in first)) throw new Error('transaction 1 has no event');
    await view.replace(1, [{ ...first, change: { ...first.change, revision: 1 } }]);
    const { differences } = await verify();
    expect(differences).toEqual([{ transactionId: 1, kind: 'differing' }]);
    expect(await repairView(differences, repairing)).toEqual([]);
    expect((await verify()).differences).toEqual([]);
  });

  test('permanently hides an erased transaction that is still shown', async () => {
    const { view, store, verify, repairing } = await start();
    await store.erase('transaction-1');
    const { differences } = await verify();
    expect(differences).toEqual([{ transactionId: 1, kind: 'surplus' }]);
    expect(await repairView(differences, repairing)).toEqual([]);
    expect(await rowIn(view, 1)).toBe('hidden');
  });

  test('expects nothing of an event that can only be parked', async () => {
    const { append, verify } = await start();
    await append('transaction-4', voided(4));
    await append('transaction-1', confirmed(1, { account_id: 8 }));
    expect((await verify()).differences).toEqual([]);
  });

  test('judges only one account or a range of time if asked to', async () => {
    const { view, verify, clock, append } = await start();
    await view.replace(1, []);
    clock.advance(1_000);
    await append('transaction-5', confirmed(5, { account_id: 8 }));
    expect(await verify({ accountId: 8 })).toMatchObject({
      checked: 1,
      differences: [{ transactionId: 5, kind: 'missing' }],
    });
    expect(await verify({ sinceMs: clock.now() })).toMatchObject({ checked: 1 });
    expect((await verify({ untilMs: clock.now() - 1 })).differences).toEqual([
      { transactionId: 1, kind: 'missing' },
    ]);
  });

  test('does not report what the view applies in the meantime', async () => {
    const { view, append, store, verify } = await start();
    await append('transaction-4', confirmed(4));
    const { generation = 0 } = (await view.checkpoint()) ?? {};
    const changes = (await store.readStream('transaction-4')).map(projectEvent);
    const onProgress = (): void => {
      setTimeout(() => void view.apply(changes, { generation, position: 11 }), 50);
    };
    expect(await verify({ settleMs: 400, onProgress })).toMatchObject({ checked: 4, differences: [] });
  });

  test('judges up to where the view is when everything has settled, and no further', async () => {
    const { view, append, verify } = await start();
    for (let id = 4; id <= 12; id++) await append(`transaction-${id}`, confirmed(id)); // at positions 5 to 13
    const { generation = 0 } = (await view.checkpoint()) ?? {};
    const missing = ({ differences }: Awaited<ReturnType<typeof verify>>) =>
      differences.map(({ transactionId }) => transactionId);
    const first = await verify();
    expect([missing(first), first.checked]).toEqual([[4, 5, 6, 7, 8, 9], 9]);
    const onProgress = (): void => {
      setTimeout(() => void view.apply([], { generation, position: 13 }), 20);
    };
    expect(missing(await verify({ settleMs: 300, onProgress }))).toEqual([4, 5, 6, 7, 8, 9, 10, 11, 12]);
  });

  test('does not report a row to which the view applied an event after its stream was read', async () => {
    const { view, append, store, verify } = await start();
    await view.replace(1, []);
    let reads = 0;
    const followed = replacing(store, {
      async readStreams(streams) {
        reads += 1;
        const found = await store.readStreams(streams);
        if (reads === 1) await view.replace(1, (await store.readStream('transaction-1')).map(projectEvent));
        if (reads === 2) {
          await append('transaction-1', voided(1));
          await view.replace(1, (await store.readStream('transaction-1')).map(projectEvent));
        }
        return found;
      },
    });
    expect((await verify({ store: followed })).differences).toEqual([]);
    expect(reads).toBe(2);
  });

  test('repairs a row once more if an event was recorded in between', async () => {
    const { view, append, store, repairing } = await start();
    let reads = 0;
    const followed = replacing(store, {
      async readStream(stream, options) {
        const found = await store.readStream(stream, options);
        if (++reads === 1) await append('transaction-1', voided(1));
        return found;
      },
    });
    const wrong = [{ transactionId: 1, kind: 'differing' }] as const;
    expect(await repairView(wrong, { ...repairing, store: followed })).toEqual([]);
    expect(await rowIn(view, 1)).toBe('hidden');
  });

  test('includes both ends of a range, and reports rows without events whatever the range', async () => {
    const { view, verify, clock } = await start();
    const recordedAtMs = clock.now();
    await view.replace(1, []);
    await view.replace(99, [showing({ id: 99, accountId: 8 })]);
    const namedIn = async (range: Pick<VerifyViewOptions, 'sinceMs' | 'untilMs'>) => {
      const { checked, differences } = await verify(range);
      return [checked, ...differences.map(({ transactionId }) => transactionId).sort((a, b) => a - b)];
    };
    expect(await namedIn({ sinceMs: recordedAtMs, untilMs: recordedAtMs })).toEqual([3, 1, 99]);
    expect(await namedIn({ untilMs: recordedAtMs - 1 })).toEqual([0, 99]);
    expect(await namedIn({ sinceMs: recordedAtMs + 1 })).toEqual([0, 99]);
  });

  test('reads all pages of an account, and only of that account if asked to', async () => {
    const { view, verify } = await start();
    const { generation = 0 } = (await view.checkpoint()) ?? {};
    const more = Array.from({ length: 502 }, (_, n) => showing({ id: 1_000 + n, accountId: 8 }));
    await view.apply(more, { generation, position: 11 });
    const { differences } = await verify();
    expect(differences).toHaveLength(502);
    expect((await verify({ accountId: 8 })).differences).toHaveLength(502);
    expect(await verify({ accountId: 7 })).toMatchObject({ checked: 3, differences: [] });
  });

  test('finds what is shown of an account that only the events name', async () => {
    const { view, append, store, verify } = await start();
    const { generation = 0 } = (await view.checkpoint()) ?? {};
    await append('transaction-4', confirmed(4, { account_id: 9 }));
    const changes = (await store.readStream('transaction-4')).map(projectEvent);
    await view.apply([...changes, showing({ id: 98, accountId: 9 })], { generation, position: 11 });
    expect((await verify()).differences).toEqual([{ transactionId: 98, kind: 'surplus' }]);
  });

  test('a repair returns what still differs, and is recorded if anything was repaired', async () => {
    const { view, verify, repairing, store } = await start();
    const recorded = async () => (await store.readStream('operations')).map(({ type }) => type);
    expect(await repairView([], repairing)).toEqual([]);
    await view.replace(1, []);
    const { differences } = await verify();
    const stuck = interposed(view, ['find'], () => view.replace(1, []));
    expect(await repairView(differences, { ...repairing, view: stuck })).toEqual(differences);
    expect(await recorded()).toEqual([]);
    expect(await repairView(differences, repairing)).toEqual([]);
    expect(await recorded()).toEqual(['AgreementRepaired']);
  });
});
