import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { describe, inject } from 'vitest';
import { PostgresConnection } from '../../../../src/engines/postgresql/driver/connection.ts';
import { atEndOfFile } from '../../end-of-file.ts';

/** Runs its tests if there is a PostgreSQL. `engines-setup.ts` prints a line if there is none. */
export const describeWithPostgres = describe.runIf(inject('postgresUrl') !== undefined);

const schemas = new Set<string>();
const connections: PostgresConnection[] = [];

atEndOfFile(async () => {
  for (const connection of connections.splice(0)) await connection.close();
  if (schemas.size === 0) return;
  const client = new pg.Client(postgresUrl());
  await client.connect();
  for (const schema of schemas) await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
  schemas.clear();
  await client.end();
});

export function postgresUrl(): string {
  const url = inject('postgresUrl');
  if (url === undefined) throw new Error('there is no PostgreSQL to test with');
  return url;
}

/** Returns the name of a new schema, which is dropped when the tests of the file are over. */
export function freshSchema(): string {
  const name = `fuel_test_${randomUUID().slice(0, 8)}`;
  schemas.add(name);
  return name;
}

/** Connects for this schema, by default a fresh one. The connection is closed when the tests of the file are over. */
export function postgresql(schema = freshSchema(), url = postgresUrl()): PostgresConnection {
  const connection = new PostgresConnection({ url, schema });
  connections.push(connection);
  return connection;
}
