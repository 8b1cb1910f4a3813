import { randomUUID } from 'node:crypto';
import { MongoClient } from 'mongodb';
import { describe, inject } from 'vitest';
import { MongoConnection } from '../../../src/engines/mongodb/driver/connection.ts';
import { atEndOfFile } from '../end-of-file.ts';

/** Runs its tests if there is a MongoDB. `engines-setup.ts` prints a line if there is none. */
export const describeWithMongodb = describe.runIf(inject('mongodbUrl') !== undefined);

const databases = new Set<string>();
const connections: MongoConnection[] = [];

atEndOfFile(async () => {
  for (const connection of connections.splice(0)) await connection.close();
  if (databases.size === 0) return;
  const client = new MongoClient(mongodbUrl());
  for (const name of databases) await client.db(name).dropDatabase();
  databases.clear();
  await client.close();
});

export function mongodbUrl(): string {
  const url = inject('mongodbUrl');
  if (url === undefined) throw new Error('there is no MongoDB to test with');
  return url;
}

/** Returns the name of a new database, which is dropped when the tests of the file are over. */
export function freshDatabase(): string {
  const name = `fuel-test-${randomUUID().slice(0, 8)}`;
  databases.add(name);
  return name;
}

/** Connects to this database, by default a fresh one. The connection is closed when the tests of the file are over. */
export function mongodb(database = freshDatabase()): MongoConnection {
  const connection = new MongoConnection({ url: mongodbUrl(), database });
  connections.push(connection);
  return connection;
}
