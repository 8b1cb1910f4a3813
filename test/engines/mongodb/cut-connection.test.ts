import { expect, it, onTestFinished } from 'vitest';
import { MongoConnection } from '../../../src/engines/mongodb/driver/connection.ts';
import { openMongoTables } from '../../../src/engines/mongodb/tables/tables.ts';
import { type StorePlan, tablePlan } from '../../../src/tables/plan.ts';
import { put } from '../../../src/tables/tables.ts';
import { describeWithMongodb, freshDatabase, mongodbUrl } from '../../support/engines/mongodb.ts';
import { CuttablePort } from '../../support/event-store/eventstoredb-double/cuttable-port.ts';

const ITEMS = tablePlan({ name: 'items', key: 'id', columns: { id: 'integer' }, indexes: {} });
const PLAN: StorePlan = {
  ...{ name: 'items', version: 1, tables: [ITEMS], durability: 'full', withinMs: 5_000 },
};

interface Item {
  readonly _id: number;
}

/** A connection that works, and what cuts it for good. */
async function cuttable() {
  const url = new URL(mongodbUrl());
  const port = await CuttablePort.open({ port: 0, target: Number(url.port) });
  url.port = String(port.port);
  const connection = new MongoConnection({ url: url.href, database: freshDatabase() });
  onTestFinished(() => connection.close());
  await connection.use((db) => db.collection<Item>('items').insertOne({ _id: 0 }));
  return { port, connection };
}

const WRITES: readonly [string, (connection: MongoConnection) => Promise<unknown>][] = [
  [
    'a write of rows',
    (connection) => openMongoTables(PLAN, { connection }).write([put(ITEMS, { id: 1 }, 'missing')]),
  ],
];

describeWithMongodb('a write to MongoDB whose connection is cut', () => {
  it.each(WRITES)('never counts as done, and rejects with STORE_UNAVAILABLE: %s', async (_, write) => {
    const { port, connection } = await cuttable();
    port.freeze();
    const writing = write(connection);
    const outcome = expect(writing).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await port.close();
    await outcome;
  });
});
