/**
 * `npm run test:containers` runs the suites of the engines against containers of the versions that docker-compose.yml
 * runs, after it has restarted each on used volumes. An engine whose image is not here and can't be pulled is left out and named. Exits with 1 if no daemon answers
 * or neither image is here, since somebody asked for this.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { MongoDBContainer, type StartedMongoDBContainer } from '@testcontainers/mongodb';
import { GenericContainer, type StartedTestContainer, Wait } from 'testcontainers';
import { type ComposeService, composeFile, ROOT } from '../deploy/compose-file.ts';
import { dockerAnswers, imagesHere } from './docker.ts';
import { restartOnUsedVolumes } from './restart.ts';

const EVENTSTORE_PORT = 2113;
/** Test files with one of these in their path are run. */
const SUITES = ['mongodb', 'eventstoredb', 'store-copy'];
const VITEST = join(ROOT, 'node_modules/vitest/vitest.mjs');

/** The container that removes the others if this process is killed. */
const REAPER = 'testcontainers/ryuk:0.14.0';

async function startEventStore({ image, environment }: ComposeService): Promise<StartedTestContainer> {
  return await new GenericContainer(image)
    .withEnvironment({ ...environment, EVENTSTORE_MEM_DB: 'true' })
    .withExposedPorts(EVENTSTORE_PORT)
    .withWaitStrategy(Wait.forHttp('/health/live', EVENTSTORE_PORT).forStatusCode(204))
    .start();
}

async function startMongoDb({ image }: ComposeService): Promise<StartedMongoDBContainer> {
  return await new MongoDBContainer(image).start();
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
  if (!dockerAnswers()) {
    console.error('test:containers needs Docker: no daemon answers');
    return 1;
  }
  const { eventstore, mongodb } = composeFile().services;
  if (eventstore === undefined || mongodb === undefined)
    throw new Error('docker-compose.yml lacks an engine');
  const here = imagesHere([eventstore.image, mongodb.image]);
  for (const { image } of [eventstore, mongodb])
    console.log(`${image}: ${here.get(image) ?? 'not here, left out'}`);
  if (here.size === 0) return 1;
  for (const [name, service] of Object.entries({ eventstore, mongodb })) {
    if (!here.has(service.image)) continue;
    await restartOnUsedVolumes(name, service);
    console.log(`${name}: restarted on used volumes`);
  }
  if (imagesHere([REAPER]).size === 0) process.env.TESTCONTAINERS_RYUK_DISABLED = 'true';
  await using mongo = here.has(mongodb.image) ? await startMongoDb(mongodb) : undefined;
  await using events = here.has(eventstore.image) ? await startEventStore(eventstore) : undefined;
  const url = events && `esdb://${events.getHost()}:${events.getMappedPort(EVENTSTORE_PORT)}?tls=false`;
  return await runSuites({
    ...(mongo && { MONGODB_URL: `${mongo.getConnectionString()}/?directConnection=true` }),
    ...(url && { EVENTSTORE_URL: url }),
  });
}

process.exitCode = await main();
