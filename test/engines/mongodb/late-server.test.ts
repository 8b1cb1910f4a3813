import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { MongoConnection } from '../../../src/engines/mongodb/driver/connection.ts';
import { Mongod } from '../../support/engines/mongod.ts';

describe.runIf(inject('mongodBinary') !== undefined)(
  'a connection that is used before the server is up',
  () => {
    test('rejects with STORE_UNAVAILABLE, and works once the server is there', async () => {
      const mongod = await new Mongod({ binary: inject('mongodBinary') ?? '' }).start();
      onTestFinished(() => mongod.remove());
      await mongod.kill();
      const connection = new MongoConnection({ url: mongod.url, database: 'fuel' });
      onTestFinished(() => connection.close());
      const insert = () => connection.use((db) => db.collection('things').insertOne({ name: 'one' }));
      const tries = await Promise.allSettled([insert(), insert()]);
      for (const each of tries) {
        expect(each).toMatchObject({ status: 'rejected', reason: { code: 'STORE_UNAVAILABLE' } });
      }
      await mongod.start();
      expect(await insert()).toMatchObject({ acknowledged: true });
    });
  },
);
