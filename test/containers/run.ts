/**
 * `npm run test:containers`: the suites of the engines, against containers of the versions that
 * docker-compose.yml runs. Ends with 1 where there is no Docker: it was asked for.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { MongoDBContainer } from '@testcontainers/mongodb';
import { GenericContainer, getContainerRuntimeClient, type StartedTestContainer, Wait } from 'testcontainers';
import { composeFile, ROOT } from '../deploy/compose-file.ts';

const EVENTSTORE_PORT = 2113;
/** Test files with one of these in their path; vitest says which it runs. */
const SUITES = ['mongodb', 'eventstoredb', 'store-copy'];
const VITEST = join(ROOT, 'node_modules/vitest/vitest.mjs');

async function startEventStore(): Promise<StartedTestContainer> {
  const { eventstore } = composeFile().services;
  if (eventstore === undefined) throw new Error('docker-compose.yml has no service eventstore');
  return await new GenericContainer(eventstore.image)
    .withEnvironment({ ...eventstore.environment, EVENTSTORE_MEM_DB: 'true' })
    .withExposedPorts(EVENTSTORE_PORT)
    .withWaitStrategy(Wait.forHttp('/health/live', EVENTSTORE_PORT).forStatusCode(204))
    .start();
}

async function runSuites(engines: Readonly<Record<string, string>>): Promise<number> {
  const child = spawn(process.execPath, [VITEST, 'run', ...SUITES], {
    cwd: ROOT,
    env: { ...process.env, ...engines },
    stdio: 'inherit',
  });
  const [code] = await once(child, 'close');
  return code ?? 1;
}

async function main(): Promise<number> {
  try {
    await getContainerRuntimeClient();
  } catch (error) {
    console.error(`test:containers needs Docker: ${(error as Error).message}`);
    return 1;
  }
  const { mongodb } = composeFile().services;
  if (mongodb === undefined) throw new Error('docker-compose.yml has no service mongodb');
  await using mongo = await new MongoDBContainer(mongodb.image).start();
  await using eventStore = await startEventStore();
  return await runSuites({
    MONGODB_URL: `${mongo.getConnectionString()}/?directConnection=true`,
    EVENTSTORE_URL: `esdb://${eventStore.getHost()}:${eventStore.getMappedPort(EVENTSTORE_PORT)}?tls=false`,
  });
}

process.exitCode = await main();
