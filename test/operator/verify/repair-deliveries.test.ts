import { describe, expect, test } from 'vitest';
import { operationsOf } from '../../../src/event-store/operations.ts';
import { range, startVerifying } from '../../support/agreement/verifying.ts';
import { countByState, listed } from '../../support/deliveries/listed.ts';
import { cancelled, voided } from '../../support/transactions/e2e-samples.ts';

describe('repairing deliveries', () => {
  test('stores those of cancelled and voided transactions as withdrawn, before anybody could send them', async () => {
    const { confirm, append, verify, queue, repair } = await startVerifying();
    for (const id of [1, 2, 3]) await confirm(id);
    await append('transaction-1', voided(1));
    await append('transaction-2', cancelled(2));
    const { missing } = await verify();
    const enqueue = queue.enqueue.bind(queue);
    const states: string[] = [];
    queue.enqueue = async (...args) => {
      const claimed = await enqueue(...args);
      for (const { state } of await listed(queue)) states.push(state);
      return claimed;
    };
    await repair(missing);
    expect(states.sort()).toEqual(['pending', 'withdrawn', 'withdrawn']);
  });

  test('stores any number, reports progress, and is recorded once, last', async () => {
    const { repair, queue, store, owed, confirm } = await startVerifying();
    for (const id of range(450)) await confirm(id);
    const progress: number[] = [];
    const enqueue = queue.enqueue.bind(queue);
    queue.enqueue = async (...args) => {
      expect(await store.readStream('operations')).toEqual([]);
      return enqueue(...args);
    };
    await repair(
      range(450).map((n) => owed(n)),
      { onProgress: (stored) => progress.push(stored) },
    );
    expect(progress).toEqual([100, 200, 300, 400, 450]);
    expect(await countByState(queue)).toMatchObject({ pending: 450 });
    expect(await store.readStream('operations')).toMatchObject([
      { type: 'AgreementRepaired', data: { what: 'deliveries', repaired: 450 } },
    ]);
  });

  test('records nothing if nothing was missing', async () => {
    const { repair, store } = await startVerifying();
    await repair([]);
    expect(await store.readStream('operations')).toEqual([]);
  });
});

test('a rebuilt log replaces the lost one, with its withdrawals, and that is recorded', async () => {
  const { confirm, append, repairMissing, openQueue, store, verify } = await startVerifying();
  await confirm(1);
  await confirm(2);
  await append('transaction-2', voided(2));
  const lost = openQueue();
  const data = { log_id: (await lost.logId()).id, started_at: '2026-09-01T00:00:00Z' };
  await append('operations', { type: 'DeliveryLogStarted', data });
  const rebuilt = openQueue('rebuilt.db');
  await repairMissing(rebuilt, true);
  expect((await verify({ queue: rebuilt })).states).toMatchObject({ pending: 1, withdrawn: 1 });
  expect((await operationsOf(store)).deliveryLog).toEqual({
    id: (await rebuilt.logId()).id,
    firstStartedAtMs: Date.parse('2026-09-01T00:00:00Z'),
  });
  const types = (await store.readStream('operations')).map(({ type }) => type);
  expect(types.slice(-2)).toEqual(['DeliveryLogStarted', 'AgreementRepaired']);
});
