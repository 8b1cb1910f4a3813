import type { TestProject } from 'vitest/node';
import { findMongod, Mongod } from './mongod.ts';
import { findPostgres, Postgres } from './postgresql/server.ts';

const MONGODB_WAYS = 'set MONGODB_URL or MONGOD_BINARY, or put mongod on the PATH or into ../shared/mongod';
const POSTGRES_WAYS = 'set POSTGRES_URL or POSTGRES_BINARIES, or install the package postgresql';

declare module 'vitest' {
  interface ProvidedContext {
    /** `undefined` if there is none. Its tests are skipped then, and a line says so. */
    mongodbUrl: string | undefined;
    mongodBinary: string | undefined;
    postgresUrl: string | undefined;
    postgresBinaries: string | undefined;
    eventstoreUrl: string | undefined;
  }
}

/**
 * Before the tests, finds the engines that they run against, once, and prints a line about those that are missing. With
 * `FUEL_TEST_REQUIRE_MONGODB=true`, as in `.ci/run`, a missing MongoDB is a failure.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const binary = findMongod();
  const given = process.env.MONGODB_URL;
  const mongod =
    given === undefined && binary !== undefined ? await new Mongod({ binary }).start() : undefined;
  project.provide('mongodbUrl', given ?? mongod?.url);
  process.env.FUEL_TEST_MONGODB = given ?? mongod?.url ?? ''; // read by the program that starts engines
  project.provide('mongodBinary', binary);
  const binaries = findPostgres();
  const givenPostgres = process.env.POSTGRES_URL;
  const postgres =
    givenPostgres === undefined && binaries !== undefined
      ? await new Postgres({ binaries }).start()
      : undefined;
  project.provide('postgresUrl', givenPostgres ?? postgres?.url);
  process.env.FUEL_TEST_POSTGRES = givenPostgres ?? postgres?.url ?? '';
  project.provide('postgresBinaries', binaries);
  project.provide('eventstoreUrl', process.env.EVENTSTORE_URL);
  if (given === undefined && mongod === undefined && process.env.FUEL_TEST_REQUIRE_MONGODB === 'true') {
    throw new Error(`there is no MongoDB to test with: ${MONGODB_WAYS}`);
  }
  const missing = [
    ...(given === undefined && mongod === undefined ? [`MongoDB (${MONGODB_WAYS})`] : []),
    ...(givenPostgres === undefined && postgres === undefined ? [`PostgreSQL (${POSTGRES_WAYS})`] : []),
    ...(process.env.EVENTSTORE_URL === undefined
      ? ['a real EventStoreDB (set EVENTSTORE_URL; its double runs always)']
      : []),
  ];
  if (missing.length > 0) console.log(`engines not tested here: ${missing.join('; ')}`);
  return async () => {
    await Promise.all([mongod?.remove(), postgres?.remove()]);
  };
}
