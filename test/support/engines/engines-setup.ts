import type { TestProject } from 'vitest/node';
import { findMongod, Mongod } from './mongod.ts';

const MONGODB_WAYS = 'set MONGODB_URL or MONGOD_BINARY, or put mongod on the PATH or into ../shared/mongod';

declare module 'vitest' {
  interface ProvidedContext {
    /** `undefined` where there is none: then its tests are skipped, which a line says. */
    mongodbUrl: string | undefined;
    mongodBinary: string | undefined;
    eventstoreUrl: string | undefined;
  }
}

/**
 * Before the tests: finds the engines that they run against, once, and says in a line which are missing. With
 * `FUEL_TEST_REQUIRE_MONGODB=true`, as in `.ci/run`, a missing MongoDB is a failure.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const binary = findMongod();
  const given = process.env.MONGODB_URL;
  const mongod =
    given === undefined && binary !== undefined ? await new Mongod({ binary }).start() : undefined;
  project.provide('mongodbUrl', given ?? mongod?.url);
  process.env.FUEL_TEST_MONGODB = given ?? mongod?.url ?? ''; // for the program that starts engines
  project.provide('mongodBinary', binary);
  project.provide('eventstoreUrl', process.env.EVENTSTORE_URL);
  if (given === undefined && mongod === undefined && process.env.FUEL_TEST_REQUIRE_MONGODB === 'true') {
    throw new Error(`there is no MongoDB to test with: ${MONGODB_WAYS}`);
  }
  const missing = [
    ...(given === undefined && mongod === undefined ? [`MongoDB (${MONGODB_WAYS})`] : []),
    ...(process.env.EVENTSTORE_URL === undefined
      ? ['a real EventStoreDB (set EVENTSTORE_URL; its double runs always)']
      : []),
  ];
  if (missing.length > 0) console.log(`engines not tested here: ${missing.join('; ')}`);
  return async () => mongod?.remove();
}
