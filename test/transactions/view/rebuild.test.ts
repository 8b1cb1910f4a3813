import { pino } from 'pino';
import { expect, test } from 'vitest';
import { OPERATIONS_STREAM } from '../../../src/domain/operations-events.ts';
import { rebuildTransactions } from '../../../src/transactions/view/rebuild.ts';
import type { TransactionsView } from '../../../src/transactions/view/transactions-view.ts';
import { confirmed, voided } from '../../support/transactions/e2e-samples.ts';
import { beforeCall, openProjection, WAIT_MS } from '../../support/transactions/projector.ts';
import { until } from '../../support/waiting.ts';

const WHOLE = {
  accountId: 7,
  fromMs: 0,
  toMs: 8e15,
  statuses: ['CONFIRMED', 'EXTERNAL'],
  limit: 50,
} as const;

/** Transactions 1 to 3 in the log, of which 2 was voided, and a way to rebuild the view of them. */
async function recorded() {
  const opened = openProjection();
  const { store, view, coordination, clock, append } = opened;
  await append('transaction-1', confirmed(1));
  await append('transaction-2', confirmed(2), voided(2));
  await append('transaction-3', confirmed(3));
  const progress: { readonly position: number; readonly target: number }[] = [];
  const rebuild = (onView: TransactionsView = view): Promise<void> =>
    rebuildTransactions({
      ...{ store, view: onView, coordination, clock },
      log: pino({ level: 'silent' }),
      author: { actor: 'Ada', command: 'test' },
      onProgress: (step) => void progress.push(step),
    });
  const ids = async (): Promise<number[]> => (await view.page(WHOLE)).rows.map(({ id }) => id);
  const operations = async () => (await store.readStream(OPERATIONS_STREAM)).slice(1);
  return { ...opened, rebuild, progress, ids, operations };
}

test('a rebuild resets the view, fills it to the end of the log, and is recorded with its author', async () => {
  const { rebuild, progress, ids, operations, store, view, holder } = await recorded();
  const { generation } = await view.reset('of another store', 0);
  await view.apply([], { generation, position: 1_000 });
  await rebuild();
  expect(await ids()).toEqual([3, 1]);
  const [event, ...more] = await operations();
  expect(more).toEqual([]);
  expect(event).toMatchObject({
    type: 'ViewRebuilt',
    data: { view: 'transactions' },
    metadata: { actor: 'Ada' },
  });
  const target = (event?.position ?? 0) - 1;
  expect(progress.map((step) => step.target)).toEqual(progress.map(() => target));
  expect(progress.at(-1)?.position).toBeGreaterThanOrEqual(target);
  expect(await view.checkpoint()).toMatchObject({ servesFrom: target, generation: generation + 1 });
  expect(await store.head()).toBe(target + 1);
  expect(await holder()).toBeUndefined();
});

test('a rebuild leaves the work to the projector that is active, which keeps its lease', async () => {
  const { rebuild, start, shows, ids, holder, view } = await recorded();
  const { said } = start();
  await shows(3);
  const before = await view.checkpoint();
  await rebuild();
  expect(await ids()).toEqual([3, 1]);
  expect((await view.checkpoint())?.generation).toBe((before?.generation ?? 0) + 1);
  expect([await holder(), said('lost its lease')]).toEqual(['one', false]);
});

test('while it is rebuilt the view serves no page, not even of rows that it has again', async () => {
  const { rebuild, view, start, shows } = await recorded();
  const { stop } = start();
  await shows(3);
  await stop();
  let refused = 0;
  const asking = beforeCall(view, 'apply', () => {
    void view.page(WHOLE).catch(({ code }) => {
      if (code === 'STORE_UNAVAILABLE') refused++;
    });
  });
  await rebuild(asking);
  await until(async () => refused > 0, WAIT_MS);
});

test('a rebuild that fails rejects and records nothing', async () => {
  const { rebuild, view, operations } = await recorded();
  const failing = beforeCall(view, 'apply', () => {
    throw new Error('no space');
  });
  await expect(rebuild(failing)).rejects.toThrow('no space');
  expect(await operations()).toEqual([]);
});
