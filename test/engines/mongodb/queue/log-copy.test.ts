import { onTestFinished } from 'vitest';
import type { MongoConnection } from '../../../../src/engines/mongodb/driver/connection.ts';
import { openMongoDeliveryQueue } from '../../../../src/engines/mongodb/queue/queue.ts';
import { deliveryLogCopyContract } from '../../../contracts/delivery-log-copy.contract.ts';
import { describeWithMongodb, mongodb } from '../../../support/engines/mongodb.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const COLLECTIONS = ['deliveries', 'withdrawals', 'lanes', 'delivery_log'];

describeWithMongodb('the delivery log in MongoDB', () => {
  /** Emptied and used again: making the indexes of a fresh one takes longer than a test. */
  const free: MongoConnection[] = [];

  deliveryLogCopyContract(async () => {
    const connection = free.pop() ?? mongodb();
    onTestFinished(async () => {
      const emptied = (name: string) => connection.use((db) => db.collection(name).deleteMany({}));
      await Promise.all(COLLECTIONS.map(emptied));
      free.push(connection);
    });
    return { queue: openMongoDeliveryQueue({ connection, clock: new FakeClock() }) };
  });
});
