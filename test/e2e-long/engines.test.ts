import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { PushService } from '../support/deliveries/push-service.ts';
import { Mongod } from '../support/engines/mongod.ts';
import { freshDatabase, mongodbUrl } from '../support/engines/mongodb.ts';
import {
  type EventStoreDbDouble,
  startEventStoreDbDouble,
} from '../support/event-store/eventstoredb-double/eventstoredb-double.ts';
import { type Env, folder } from '../support/service/commands.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import { SEPTEMBER } from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

const UNAVAILABLE = { status: 503, body: { error: { code: 'SERVICE_UNAVAILABLE' } } };

interface TestEngines {
  readonly env: Env;
  readonly events: EventStoreDbDouble;
}

/** Starts a separate event store, and a separate database in the shared MongoDB. */
async function engines(mongodb = mongodbUrl()): Promise<TestEngines> {
  const events = await startEventStoreDbDouble();
  onTestFinished(() => events.stop());
  const env = { EVENTSTORE_URL: events.url, MONGODB_URL: mongodb, MONGODB_DATABASE: freshDatabase() };
  return { env, events };
}

/** Expects every answer to be a refusal, and in time unless the machine was too busy. */
async function expectRefusedInTime(ask: () => Promise<{ status: number; tookMs: number }>): Promise<void> {
  const answers = [];
  for (let asked = 0; asked < 3; asked++) answers.push(await ask());
  for (const answer of answers) expect(answer).toMatchObject(UNAVAILABLE);
  expect(Math.min(...answers.map(({ tookMs }) => tookMs))).toBeLessThan(2_000);
}

/** Starts a MongoDB that the test may kill. */
async function ownMongod(): Promise<Mongod> {
  const mongod = await new Mongod({ binary: inject('mongodBinary') ?? '' }).start();
  onTestFinished(() => mongod.remove());
  return mongod;
}

/** These tests need a MongoDB that they may kill. */
describe.runIf(inject('mongodBinary') !== undefined)('while an engine is unavailable', () => {
  it('without MongoDB the API answers 503 within 2 s, killed or frozen; then everything continues, nothing is duplicated', async () => {
    const mongod = await ownMongod();
    const { env } = await engines(mongod.url);
    const push = await PushService.start(env);
    const { account, key, path } = await push.customer(1);
    await push.push(account, 3);
    await push.settled(account, 'delivered', 3);
    const ask = async () => {
      const askedAtMs = Date.now();
      const { status, body } = await push.service.get(`/transactions?${SEPTEMBER}`, { key });
      return { status, body, tookMs: Date.now() - askedAtMs };
    };
    mongod.signal('SIGSTOP');
    await expectRefusedInTime(ask);
    await mongod.kill();
    await expectRefusedInTime(ask);
    await until(async () => {
      const { status, body } = await push.service.ops('/readyz');
      return status === 503 && body.checks.mongodb === false && body.checks.eventstoredb === true;
    }); // a result of the health check is kept for a second
    const recorded = push.made(account, 5);
    await push.record(recorded, { wait: false });
    await mongod.start();
    await until(async () => (await ask()).status === 200);
    await push.settled(account, 'delivered', 8);
    // An attempt whose outcome could not be recorded may be repeated, but only with the same id.
    const bodies = push.receiver.to(path).map(({ body }) => body);
    expect(new Set(bodies.map(({ data }) => data.transaction.id)).size).toBe(8);
    expect(new Set(bodies.map(({ id }) => id)).size).toBe(8);
    // The projector may still be pausing before it tries MongoDB again.
    await until(async () => (await push.service.fuel(['verify', '--json'])).code === 0);
  });

  it('without EventStoreDB the API serves for FUEL_DIRECTORY_MAX_AGE, then answers 503, and recovers', async () => {
    const { env, events } = await engines();
    const push = await PushService.start({ ...env, FUEL_DIRECTORY_MAX_AGE: '3s' });
    const { account, key, path } = await push.customer(1);
    await push.push(account, 2);
    await push.settled(account, 'delivered', 2);
    const status = async () => (await push.service.get(`/transactions?${SEPTEMBER}`, { key })).status;
    events.freeze();
    expect(await status()).toBe(200);
    await until(async () => (await push.service.ops('/readyz')).body.checks.eventstoredb === false);
    await until(async () => (await status()) === 503);
    const refused = await push.service.fuel(['account', 'show', '1']);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('EventStoreDB')]);
    events.thaw();
    await until(async () => (await status()) === 200);
    await push.push(account, 2);
    await push.settled(account, 'delivered', 4);
    expect(push.receiver.deliveriesTo(path).size).toBe(4);
  });

  it('a service that starts before its engines waits, says for which, and stops in order meanwhile', async () => {
    const mongod = await ownMongod();
    const { env, events } = await engines(mongod.url);
    const port = events.port;
    const dataDir = folder();
    await events.stop();
    await mongod.kill();
    const service = new ServiceProcess({ env: { ...env, FUEL_LOG_LEVEL: 'info' } });
    service.launch();
    await service.logged((line) => String(line.msg).includes('start (eventstoredb) waits'));
    service.signal('SIGTERM');
    expect(await service.ended()).toBe(0);
    service.launch();
    await service.logged((line) => String(line.msg).includes('start (eventstoredb) waits'));
    const again = await startEventStoreDbDouble({ port, folder: dataDir });
    onTestFinished(() => again.stop());
    await service.logged((line) => String(line.msg).includes('start (mongodb) waits'));
    await mongod.start();
    await service.logged((line) => line.msg === 'listening');
    expect(await service.stop()).toBe(0);
  });
});
