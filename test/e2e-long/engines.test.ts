import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { PushService } from '../support/deliveries/push-service.ts';
import { answerWith } from '../support/deliveries/webhook-receiver.ts';
import { Mongod } from '../support/engines/mongod.ts';
import { describeWithMongodb, freshDatabase, mongodbUrl } from '../support/engines/mongodb.ts';
import {
  type EventStoreDbDouble,
  startEventStoreDbDouble,
} from '../support/event-store/eventstoredb-double/eventstoredb-double.ts';
import { type Env, folder } from '../support/service/commands.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import {
  GROUP,
  idsOf,
  importEvents,
  minutely,
  openAccount,
  SEPTEMBER,
} from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

const UNAVAILABLE = { status: 503, body: { error: { code: 'SERVICE_UNAVAILABLE' } } };

interface TestEngines {
  readonly env: Env;
  readonly events: EventStoreDbDouble;
}

/** A separate event store, and a separate database in the shared MongoDB. */
async function engines(mongodb = mongodbUrl()): Promise<TestEngines> {
  const events = await startEventStoreDbDouble();
  onTestFinished(() => events.stop());
  const env = { EVENTSTORE_URL: events.url, MONGODB_URL: mongodb, MONGODB_DATABASE: freshDatabase() };
  return { env, events };
}

/** Every answer is a refusal, and in time where the machine that the test runs on was not too busy to give it. */
async function expectRefusedInTime(ask: () => Promise<{ status: number; tookMs: number }>): Promise<void> {
  const answers = [];
  for (let asked = 0; asked < 3; asked++) answers.push(await ask());
  for (const answer of answers) expect(answer).toMatchObject(UNAVAILABLE);
  expect(Math.min(...answers.map(({ tookMs }) => tookMs))).toBeLessThan(2_000);
}

/** A MongoDB that the test may kill. */
async function ownMongod(): Promise<Mongod> {
  const mongod = await new Mongod({ binary: inject('mongodBinary') ?? '' }).start();
  onTestFinished(() => mongod.remove());
  return mongod;
}

describeWithMongodb('a service on EventStoreDB (its double) and MongoDB', () => {
  it('is selected by configuration alone: both channels, shown and verified alike', async () => {
    const push = await PushService.start((await engines()).env);
    const { account, key, path } = await push.customer(1);
    const ids = await push.push(account, 20);
    await push.settled(account, 'delivered', 20);
    expect(new Set(push.receiver.to(path).map(({ body }) => body.data.transaction.id))).toEqual(new Set(ids));
    const today = `from=${new Date(Date.now() - 3_600_000).toISOString()}&to=${new Date().toISOString()}`;
    const page = await push.service.get(`/transactions?${today}&limit=20`, { key });
    expect(new Set(idsOf(page.body))).toEqual(new Set(ids));
    const verified = await push.service.fuel(['verify', '--json']);
    expect([verified.code, verified.json]).toEqual([
      0,
      {
        view: { checked: 20, differences: 0 },
        deliveries: expect.objectContaining({ owed: 20, delivered: 20, missing: 0, surplus: 0 }),
      },
    ]);
    expect(await push.service.stop()).toBe(0);
  }, 60_000);

  it('shares rate windows among API processes, and all of them answer alike', async () => {
    const { env } = await engines();
    const first = new ServiceProcess({ env });
    const second = new ServiceProcess({ env, args: ['--role', 'api'] });
    await Promise.all([first.start(), second.start()]);
    const { key } = await openAccount(first, { rateLimit: 10 });
    await importEvents(first, minutely(3));
    const path = `/transactions?${SEPTEMBER}&limit=2`;
    const answers = await Promise.all(
      Array.from({ length: 24 }, (_, n) => (n % 2 === 0 ? first : second).get(path, { key })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([
      ...Array(10).fill(200),
      ...Array(14).fill(429),
    ]);
    const texts = new Set(answers.filter(({ status }) => status === 200).map(({ body }) => body.data[0].id));
    expect(texts.size).toBe(1);
  }, 60_000);
});

describeWithMongodb('roles on several machines', () => {
  it('a standby projector takes over within 5 s when the active one is killed', async () => {
    const { env } = await engines();
    const api = new ServiceProcess({ env, args: ['--role', 'api'] });
    const projectors = [1, 2].map(() => new ServiceProcess({ env, args: ['--role', 'projector'] }));
    await Promise.all([api, ...projectors].map((process) => process.start()));
    const { key } = await openAccount(api, { structure: true });
    await importEvents(api, minutely(2));
    const isActive = (line: Record<string, unknown>) => line.msg === 'projector is active';
    const active = projectors.find(({ logLines }) => logLines.some(isActive));
    const standby = projectors.find((projector) => projector !== active);
    await active?.kill();
    const killedAtMs = Date.now();
    const takeover = standby?.logged(isActive, 15_000);
    await api.done(['transaction', 'import', '-'], {
      stdin: minutely(2, 3)
        .map((event) => `${JSON.stringify(event)}\n`)
        .join(''),
    });
    const group = `corporate_group_id=${GROUP.id}`;
    await until(
      async () => (await api.get(`/transactions?${SEPTEMBER}&${group}`, { key })).body.data.length === 4,
      15_000,
    );
    expect(Date.parse(String((await takeover)?.time)) - killedAtMs).toBeLessThan(5_000);
  }, 60_000);

  it('another dispatcher takes over what a killed one had in flight, within 10 s', async () => {
    const { env } = await engines();
    const push = await PushService.start(env);
    const other = new ServiceProcess({
      env: push.env,
      dataDir: push.service.dataDir,
      args: ['--role', 'webhooks'],
    });
    await other.start();
    const { account, path } = await push.customer(1);
    push.receiver.answer(path, () => undefined);
    const ids = await push.push(account, 8);
    await until(async () => push.receiver.to(path).length >= 8, 5_000);
    await push.service.kill();
    const killedAtMs = Date.now();
    push.receiver.answer(path, answerWith(200));
    await push.settled(account, 'delivered', 8, 20_000);
    expect(Date.now() - killedAtMs).toBeLessThan(10_000);
    expect(new Set(push.receiver.to(path).map(({ body }) => body.data.transaction.id))).toEqual(new Set(ids));
  }, 60_000);
});

/** Needs a MongoDB that the test may kill. */
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
    const away = await push.service.ops('/readyz');
    expect([away.status, away.body.checks]).toEqual([
      503,
      expect.objectContaining({ mongodb: false, eventstoredb: true }),
    ]);
    const recorded = push.made(account, 5);
    await push.record(recorded, { wait: false });
    await mongod.start();
    await until(async () => (await ask()).status === 200, 20_000);
    await push.settled(account, 'delivered', 8, 40_000);
    // An attempt whose outcome could not be recorded may come again, under the same id alone.
    const bodies = push.receiver.to(path).map(({ body }) => body);
    expect(new Set(bodies.map(({ data }) => data.transaction.id)).size).toBe(8);
    expect(new Set(bodies.map(({ id }) => id)).size).toBe(8);
    // The projector may still be in its pause before it looks for MongoDB again.
    await until(async () => (await push.service.fuel(['verify', '--json'])).code === 0, 20_000);
  }, 90_000);

  it('without EventStoreDB the API serves for FUEL_DIRECTORY_MAX_AGE, then answers 503, and recovers', async () => {
    const { env, events } = await engines();
    const push = await PushService.start({ ...env, FUEL_DIRECTORY_MAX_AGE: '3s' });
    const { account, key, path } = await push.customer(1);
    await push.push(account, 2);
    await push.settled(account, 'delivered', 2);
    const status = async () => (await push.service.get(`/transactions?${SEPTEMBER}`, { key })).status;
    events.freeze();
    expect(await status()).toBe(200);
    await until(async () => (await push.service.ops('/readyz')).body.checks.eventstoredb === false, 15_000);
    await until(async () => (await status()) === 503, 15_000);
    const refused = await push.service.fuel(['account', 'show', '1']);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('EventStoreDB')]);
    events.thaw();
    await until(async () => (await status()) === 200, 15_000);
    await push.push(account, 2);
    await push.settled(account, 'delivered', 4, 40_000);
    expect(push.receiver.to(path)).toHaveLength(4);
  }, 90_000);

  it('a service that starts before its engines waits, says for which, and stops in order meanwhile', async () => {
    const mongod = await ownMongod();
    const { env, events } = await engines(mongod.url);
    const port = events.port;
    const dataDir = folder();
    await events.stop();
    await mongod.kill();
    const service = new ServiceProcess({ env: { ...env, FUEL_LOG_LEVEL: 'info' } });
    service.launch();
    await service.logged((line) => String(line.msg).includes('start (eventstoredb) waits'), 20_000);
    service.signal('SIGTERM');
    expect(await service.ended()).toBe(0);
    service.launch();
    await service.logged((line) => String(line.msg).includes('start (eventstoredb) waits'), 20_000);
    const again = await startEventStoreDbDouble({ port, folder: dataDir });
    onTestFinished(() => again.stop());
    await service.logged((line) => String(line.msg).includes('start (mongodb) waits'), 20_000);
    await mongod.start();
    await service.logged((line) => line.msg === 'listening', 20_000);
    expect(await service.stop()).toBe(0);
  }, 90_000);
});
