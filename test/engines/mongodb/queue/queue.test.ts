import { onTestFinished } from 'vitest';
import type { MongoConnection } from '../../../../src/engines/mongodb/driver/connection.ts';
import { openMongoDeliveryQueue } from '../../../../src/engines/mongodb/queue/queue.ts';
import { boundedReadsContract } from '../../../contracts/bounded-reads.contract.ts';
import { deliveryLogContract } from '../../../contracts/delivery-log.contract.ts';
import {
  deliveryQueueContract,
  sharedDeliveryQueueContract,
} from '../../../contracts/delivery-queue.contract.ts';
import { deliveryQueueModelContract } from '../../../contracts/delivery-queue-model.contract.ts';
import { deliveryQueueOperationsContract } from '../../../contracts/delivery-queue-operations.contract.ts';
import { webhookHealthContract } from '../../../contracts/webhook-health.contract.ts';
import type { QueueUnderTest, SharedQueueUnderTest } from '../../../support/deliveries/queue-under-test.ts';
import { describeWithMongodb, mongodb, mongodbUrl } from '../../../support/engines/mongodb.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const POLL_MS = 50;

/** Emptied and used again: making the indexes of a fresh one takes longer than a test. */
const free: MongoConnection[] = [];

const emptied = (): MongoConnection => {
  const connection = free.pop() ?? mongodb();
  onTestFinished(async () => {
    await empty(connection);
    free.push(connection);
  });
  return connection;
};

const openOn = (connection: MongoConnection) => {
  const clock = new FakeClock();
  const again = () => openMongoDeliveryQueue({ connection, clock, pollMs: POLL_MS });
  return { queue: again(), again, clock };
};

const open = async (): Promise<SharedQueueUnderTest> => {
  const connection = emptied();
  const database = await connection.use(async ({ databaseName }) => databaseName);
  return { ...openOn(connection), log: { url: mongodbUrl(), database } };
};

function empty(connection: MongoConnection): Promise<unknown> {
  const names = ['deliveries', 'withdrawals', 'lanes', 'delivery_log'];
  return connection.use((db) => Promise.all(names.map((name) => db.collection(name).deleteMany({}))));
}

describeWithMongodb('the delivery queue on MongoDB', () => {
  deliveryQueueContract(open);
  sharedDeliveryQueueContract(open);
  deliveryQueueOperationsContract(open);
  webhookHealthContract(open);
  deliveryLogContract(open);
  boundedReadsContract(async () => openOn(emptied()));

  const forModel: MongoConnection[] = [];
  const openForModel = async (): Promise<QueueUnderTest> => {
    const [connection = mongodb()] = forModel.splice(0);
    forModel.push(connection);
    await empty(connection);
    return openOn(connection);
  };
  deliveryQueueModelContract(openForModel, { numRuns: 12 });
});
