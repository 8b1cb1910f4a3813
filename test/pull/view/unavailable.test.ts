import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { MongoConnection } from '../../../src/engines/mongodb/driver/connection.ts';
import type { TransactionsView } from '../../../src/pull/view/transactions-view.ts';
import { Mongod } from '../../support/engines/mongod.ts';
import { viewOnMongodb } from '../../support/transactions/open-view.ts';
import { WHOLE } from '../../support/transactions/opened-view.ts';
import { showing } from '../../support/transactions/records.ts';
import { until } from '../../support/waiting.ts';

const ANSWER_MS = 2_000;

describe.runIf(inject('mongodBinary') !== undefined)('the view on a server of its own', () => {
  const mongod = new Mongod({ binary: inject('mongodBinary') ?? '' });
  let connection: MongoConnection;
  let view: TransactionsView;

  beforeAll(async () => {
    await mongod.start();
    connection = new MongoConnection({ url: mongod.url, database: 'fuel' });
    view = viewOnMongodb(connection, { now: () => 0 });
    const { generation } = await view.reset('store-1', 1);
    await view.apply([showing({ id: 1 })], { generation, position: 1 });
  });

  afterAll(async () => {
    await connection.close();
    await mongod.remove();
  });

  test('refuses a page within 2 s while the server is frozen or unavailable, and serves it afterwards', async () => {
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
    await until(served);
    await mongod.kill();
    await refusedInTime();
    await mongod.start();
    await until(served);
  });
});

function unlessUnavailable(error: unknown): undefined {
  if ((error as { code?: unknown }).code !== 'STORE_UNAVAILABLE') throw error;
  return undefined;
}
