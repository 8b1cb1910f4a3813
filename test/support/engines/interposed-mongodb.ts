import type { Db } from 'mongodb';
import type { MongoConnection } from '../../../src/engines/mongodb/driver/connection.ts';
import { interposed, replacing } from '../interposed.ts';

const WRITES = [
  ...([
    'insertOne',
    'insertMany',
    'updateOne',
    'updateMany',
    'replaceOne',
    'deleteOne',
    'deleteMany',
  ] as const),
  ...(['bulkWrite', 'findOneAndUpdate', 'createIndexes', 'drop'] as const),
];

/** Returns the connection with a hook before each of its writes. `before` gets `<collection>.<operation>`. */
export function beforeWrites(
  connection: MongoConnection,
  before: (write: string) => void | Promise<void>,
): MongoConnection {
  const within = (db: Db): Db =>
    replacing(db, {
      collection: ((...given: Parameters<Db['collection']>) =>
        interposed(db.collection(...given), WRITES, (operation) =>
          before(`${given[0]}.${operation}`),
        )) as Db['collection'],
    });
  return replacing(connection, { use: (work) => connection.use((db) => work(within(db))) });
}
