import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { MongoConnection } from '../../../../src/mongodb/connection.ts';
import { openMongoView } from '../../../../src/transactions/view/mongodb/view.ts';
import type { TransactionsView } from '../../../../src/transactions/view/transactions-view.ts';
import { Mongod } from '../../../support/engines/mongod.ts';
import { hiding, showing } from '../../../support/transactions/records.ts';
import { until } from '../../../support/waiting.ts';

const ANSWER_MS = 2_000;
const WHOLE = {
  accountId: 7,
  fromMs: 0,
  toMs: 10_000,
  statuses: ['CONFIRMED', 'EXTERNAL'],
  limit: 50,
} as const;

describe.runIf(inject('mongodBinary') !== undefined)('the view on a MongoDB without a replica set', () => {
  const mongod = new Mongod({ binary: inject('mongodBinary') ?? '', replicaSet: false });
  let connection: MongoConnection;
  let view: TransactionsView;

  beforeAll(async () => {
    await mongod.start();
    connection = new MongoConnection({ url: mongod.url, database: 'fuel' });
    view = openMongoView({ connection, clock: { now: () => 0 } });
  });

  afterAll(async () => {
    await connection.close();
    await mongod.remove();
  });

  test('is filled, changed and served', async () => {
    const { generation } = await view.begin('store-1', 2);
    await view.apply([showing({ id: 1 }), showing({ id: 2 })], { generation, position: 1 });
    await expect(view.page(WHOLE)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    const again = [showing({ id: 1 }), hiding(2), showing({ id: 1, fees: '{"other":1}' }, { revision: 1 })];
    expect(await view.apply(again, { generation, position: 2 })).toMatchObject([{ stream: 'transaction-1' }]);
    expect((await view.page(WHOLE)).rows.map((row) => row.id)).toEqual([1]);
    expect(await view.find(2)).toBe('hidden');
  });

  test('a page is refused within 2 s while the server is frozen or away, and served when it is back', async () => {
    const refusedInTime = async (): Promise<void> => {
      const startedMs = performance.now();
      await expect(view.page(WHOLE)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
      expect(performance.now() - startedMs).toBeLessThan(ANSWER_MS);
    };
    const served = async (): Promise<boolean> =>
      (await view.page(WHOLE).catch(unlessUnavailable))?.rows.length === 1;
    mongod.signal('SIGSTOP');
    await refusedInTime();
    mongod.signal('SIGCONT');
    await until(served, 10_000);
    await mongod.kill();
    await refusedInTime();
    await mongod.start();
    await until(served, 10_000);
  });
});

function unlessUnavailable(error: unknown): undefined {
  if ((error as { code?: unknown }).code !== 'STORE_UNAVAILABLE') throw error;
  return undefined;
}
