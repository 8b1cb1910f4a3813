import type { MongoConnection } from '../../../src/engines/mongodb/driver/connection.ts';
import { deliveryQueueModelContract } from '../../contracts/delivery-queue-model.contract.ts';
import { queueOnMongo } from '../../support/deliveries/open-queue.ts';
import { describeWithMongodb, mongodb } from '../../support/engines/mongodb.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const TABLES = ['deliveries', 'withdrawals', 'lanes', 'delivery_log'];

describeWithMongodb('the delivery log on MongoDB', () => {
  /** Emptied and used again: making the indexes of a fresh one takes longer than a run. */
  let connection: MongoConnection | undefined;

  deliveryQueueModelContract(
    async () => {
      connection ??= mongodb();
      const [used, clock] = [connection, new FakeClock()];
      await used.use((db) => Promise.all(TABLES.map((name) => db.collection(name).deleteMany({}))));
      const again = () => queueOnMongo({ connection: used, clock });
      return { queue: again(), again, clock };
    },
    { numRuns: 12 },
  );
});
