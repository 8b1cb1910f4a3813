import type { Db } from 'mongodb';
import type { MongoConnection } from '../../../src/engines/mongodb/driver/connection.ts';
import { interposed } from '../interposed.ts';

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
  const collectionOf = (db: Db, ...given: Parameters<Db['collection']>) =>
    interposed(db.collection(...given), WRITES, (operation) => before(`${given[0]}.${operation}`));
  const within = (db: Db): Db =>
    new Proxy(db, {
      get: (whole, name) => {
        if (name === 'collection')
          return (...given: Parameters<Db['collection']>) => collectionOf(whole, ...given);
        const value: unknown = Reflect.get(whole, name, whole);
        return typeof value === 'function' ? value.bind(whole) : value;
      },
    });
  return new Proxy(connection, {
    get: (whole, name) => {
      if (name === 'use')
        return <T>(work: (db: Db) => Promise<T>): Promise<T> => whole.use((db) => work(within(db)));
      const value: unknown = Reflect.get(whole, name, whole);
      return typeof value === 'function' ? value.bind(whole) : value;
    },
  });
}
