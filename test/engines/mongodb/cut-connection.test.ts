import { expect, it, onTestFinished } from 'vitest';
import { MongoConnection } from '../../../src/engines/mongodb/driver/connection.ts';
import { insertMissing } from '../../../src/engines/mongodb/queue/collections.ts';
import { writeUnordered } from '../../../src/engines/mongodb/view/changes.ts';
import { describeWithMongodb, freshDatabase, mongodbUrl } from '../../support/engines/mongodb.ts';
import { CuttablePort } from '../../support/event-store/eventstoredb-double/cuttable-port.ts';

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
    'an insert of what is missing',
    (connection) =>
      connection.use((db) => insertMissing(db.collection<Item>('items'), [{ _id: 1 }, { _id: 2 }])),
  ],
  [
    'a bulk write of the view',
    (connection) =>
      connection.use((db) =>
        writeUnordered({ rows: db.collection('items') } as never, [{ deleteOne: { filter: {} } }]),
      ),
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
