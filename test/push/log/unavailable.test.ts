import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { MongoConnection } from '../../../src/engines/mongodb/driver/connection.ts';
import {
  claimFrom,
  claimOptions,
  delivered,
  failed,
  newDelivery,
} from '../../support/deliveries/deliveries.ts';
import { countByState } from '../../support/deliveries/listed.ts';
import { queueOnMongo } from '../../support/deliveries/open-queue.ts';
import type { QueueUnderTest } from '../../support/deliveries/queue-under-test.ts';
import { Mongod } from '../../support/engines/mongod.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const binary = inject('mongodBinary');

describe.runIf(binary !== undefined)('the delivery queue on a separate server', () => {
  const mongod = new Mongod({ binary: binary ?? '' });
  const connect = (): MongoConnection => {
    const connection = new MongoConnection({ url: mongod.url, database: `d-${randomUUID().slice(0, 8)}` });
    onTestFinished(() => connection.close());
    return connection;
  };
  const open = async (): Promise<QueueUnderTest> => {
    const [connection, clock] = [connect(), new FakeClock()];
    const again = () => queueOnMongo({ connection, clock });
    return { queue: again(), again, clock };
  };
  beforeAll(() => mongod.start());
  afterAll(() => mongod.remove());

  test('is unavailable within seconds while the server is, and continues when that is available again', async () => {
    const { queue } = await open();
    onTestFinished(() => queue.close());
    const [a, b] = await queue.enqueue([newDelivery(1), newDelivery(2)], claimOptions(1_000));
    if (a === undefined || b === undefined) throw new Error('nothing was claimed');
    const reports = [delivered(a, 1_000), failed(b, 1_000)];
    await mongod.kill();
    const start = performance.now();
    const unavailable = { code: 'STORE_UNAVAILABLE' };
    await Promise.all([
      expect(queue.report(reports)).rejects.toMatchObject(unavailable),
      expect(queue.enqueue([newDelivery(3)])).rejects.toMatchObject(unavailable),
      expect(claimFrom(queue, claimOptions(1_000))).rejects.toMatchObject(unavailable),
      expect(queue.health(a.prefix)).rejects.toMatchObject(unavailable),
    ]);
    expect(performance.now() - start).toBeLessThan(5_500);
    await mongod.start();
    await queue.report(reports);
    await queue.enqueue([newDelivery(3)]);
    expect(await countByState(queue)).toMatchObject({ delivered: 1, failed: 1, pending: 1 });
    expect((await queue.health(a.prefix)).failedInARow).toBe(1);
  });
});
