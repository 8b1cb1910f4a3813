import { expect, test } from 'vitest';
import type { MongoConnection } from '../../../src/engines/mongodb/driver/connection.ts';
import { claimFrom, claimOptions, failed, held, newDelivery } from '../../support/deliveries/deliveries.ts';
import { listed } from '../../support/deliveries/listed.ts';
import { queueOnMongo } from '../../support/deliveries/open-queue.ts';
import { describeWithMongodb, mongodb } from '../../support/engines/mongodb.ts';
import { viewOnMongodb } from '../../support/transactions/open-view.ts';
import { showing } from '../../support/transactions/records.ts';

const COUNT = 150;
const numbers = Array.from({ length: COUNT }, (_, index) => index + 1);
const clock = { now: () => 5_000 };

/** How often MongoDB was asked for a further batch meanwhile. */
async function furtherBatches(connection: MongoConnection, work: () => Promise<void>): Promise<number> {
  await connection.use((db) => db.command({ profile: 2 }));
  await work();
  await connection.use((db) => db.command({ profile: 0 }));
  return connection.use((db) => db.collection('system.profile').countDocuments({ op: 'getmore' }));
}

describeWithMongodb('more than a hundred documents come in one round trip', () => {
  test('of the view', async () => {
    const connection = mongodb();
    const view = viewOnMongodb(connection, clock);
    const { generation } = await view.reset('store', 0);
    const shown = numbers.map((id) => showing({ id }));
    await view.apply(shown, { generation, position: COUNT });
    const further = await furtherBatches(connection, async () => {
      expect((await view.find(numbers)).size).toBe(COUNT);
      expect(await view.rowsAfter(0, COUNT)).toHaveLength(COUNT);
      expect(await view.idsAfter(0, COUNT)).toHaveLength(COUNT);
      await view.apply(shown, { generation, position: COUNT + 1 });
    });
    expect(further).toBe(0);
  });

  test('of the delivery log', async () => {
    const connection = mongodb();
    const queue = queueOnMongo({ connection, clock });
    const lanes = numbers.map((n) =>
      newDelivery(n, { prefix: `lane-${String(n).padStart(5, '0')}`, accountId: n }),
    );
    const claim = () => claimFrom(queue, claimOptions(5_000, { limit: COUNT }));
    const further = await furtherBatches(connection, async () => {
      await queue.enqueue([...numbers.map((n) => newDelivery(n)), ...lanes]);
      expect(
        await claimFrom(queue, claimOptions(5_000, { limit: COUNT, laneCapacity: () => COUNT })),
      ).toHaveLength(COUNT);
      const rest = [...(await claim()), ...(await claim())];
      await queue.report(rest.map((one, index) => (index % 2 === 0 ? failed(one, 5_000) : held(one))));
      await queue.heldAccounts();
      await queue.failingLanes(COUNT);
      expect(await listed(queue, { transactionIds: numbers })).toHaveLength(2 * COUNT);
      expect((await queue.page({}, { limit: 2 * COUNT })).deliveries).toHaveLength(2 * COUNT);
      await queue.change({ kind: 'withdraw', transactionIds: numbers }, 5_000);
      await queue.change({ kind: 'end lane', prefix: 'aaaaaaaaaa', reason: 'key revoked' }, 5_000);
      await queue.change({ kind: 'purge', retentionMs: 0, limit: 2 * COUNT }, 2e9);
      await queue.close();
    });
    expect(further).toBe(0);
  });
});
