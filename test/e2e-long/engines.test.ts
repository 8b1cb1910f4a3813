import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { PushService } from '../support/deliveries/push-service.ts';
import { Mongod } from '../support/engines/mongod.ts';
import { freshDatabase, mongodbUrl } from '../support/engines/mongodb.ts';
import { Postgres } from '../support/engines/postgresql/server.ts';
import {
  type EventStoreDbDouble,
  startEventStoreDbDouble,
} from '../support/event-store/eventstoredb-double/eventstoredb-double.ts';
import { type Env, folder } from '../support/service/commands.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import { SEPTEMBER } from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

/** Starts an event store of its own for the test. */
async function ownEvents(): Promise<EventStoreDbDouble> {
  const events = await startEventStoreDbDouble();
  onTestFinished(() => events.stop());
  return events;
}

/** Starts a MongoDB that the test may kill. */
async function ownMongod(): Promise<Mongod> {
  const mongod = await new Mongod({ binary: inject('mongodBinary') ?? '' }).start();
  onTestFinished(() => mongod.remove());
  return mongod;
}

/** Starts a PostgreSQL that the test may kill. */
async function ownPostgres(): Promise<Postgres> {
  const postgres = await new Postgres({ binaries: inject('postgresBinaries') ?? '' }).start();
  onTestFinished(() => postgres.remove());
  return postgres;
}

const onMongodb = (url: string): Env => ({ MONGODB_URL: url, MONGODB_DATABASE: freshDatabase() });

interface Tables {
  readonly env: Env;
  readonly server: Pick<Mongod | Postgres, 'kill' | 'start'>;
  /** Stops the server from answering, without an end of its connections. */
  readonly freeze?: () => void;
}

const TABLES: readonly { name: string; title: string; isThere: boolean; open: () => Promise<Tables> }[] = [
  {
    name: 'mongodb',
    title: 'MongoDB',
    isThere: inject('mongodBinary') !== undefined,
    async open() {
      const server = await ownMongod();
      return { env: onMongodb(server.url), server, freeze: () => server.signal('SIGSTOP') };
    },
  },
  {
    name: 'postgresql',
    title: 'PostgreSQL',
    isThere: inject('postgresBinaries') !== undefined,
    async open() {
      const server = await ownPostgres();
      return { env: { POSTGRES_URL: server.url }, server };
    },
  },
];

describe.each(TABLES.filter(({ isThere }) => isThere))(
  'while $title is unavailable',
  ({ name, title, open }) => {
    it.each(['embedded events', 'EventStoreDB (its double)'])(
      'and events are on %s, the API answers 503 within 2 s, then everything continues, nothing is lost or doubled',
      async (events) => {
        const { env, server, freeze } = await open();
        const push = await PushService.start(
          events === 'embedded events' ? env : { ...env, EVENTSTORE_URL: (await ownEvents()).url },
        );
        const { account, key, path } = await push.customer(1);
        await push.push(account, 3);
        await push.settled(account, 'delivered', 3);
        const ask = async () => {
          const askedAtMs = Date.now();
          const { status, body } = await push.service.get(`/transactions?${SEPTEMBER}`, { key });
          return { status, code: body.error?.code, durationMs: Date.now() - askedAtMs };
        };
        /** Every answer is a refusal, and one comes in time however busy the machine is. */
        const isRefusedInTime = async (): Promise<void> => {
          const answers = [await ask(), await ask(), await ask()];
          for (const answer of answers)
            expect(answer).toMatchObject({ status: 503, code: 'SERVICE_UNAVAILABLE' });
          expect(Math.min(...answers.map(({ durationMs }) => durationMs))).toBeLessThan(2_000);
        };
        expect((await ask()).status).toBe(200);
        if (freeze !== undefined) {
          freeze();
          await isRefusedInTime();
        }
        await server.kill();
        await isRefusedInTime();
        await until(async () => {
          const { status, body } = await push.service.ops('/readyz');
          return status === 503 && body.checks[name] === false && body.checks.eventstoredb !== false;
        }); // a result of the health check is kept for a second
        await push.record(push.made(account, 5), { wait: false });
        await server.start();
        await until(async () => (await ask()).status === 200);
        await push.settled(account, 'delivered', 8);
        // An attempt whose outcome could not be recorded may be repeated, but only with the same id.
        const bodies = push.receiver.to(path).map(({ body }) => body);
        expect(new Set(bodies.map(({ data }) => data.transaction.id)).size).toBe(8);
        expect(new Set(bodies.map(({ id }) => id)).size).toBe(8);
        // The projector may still be pausing before its next try.
        await until(async () => (await push.service.fuel(['verify', '--json'])).code === 0);
        const doctor = await push.service.fuel(['doctor', '--json']);
        expect(doctor.stdout).toMatch(new RegExp(`${title} [\\d.]+ answers`));
        expect(doctor.stdout).not.toContain('not selected'); // an engine that is not in use is not listed
      },
    );
  },
);

/** These tests need a MongoDB that they may kill. */
describe.runIf(inject('mongodBinary') !== undefined)('while an engine is unavailable', () => {
  it('without EventStoreDB the API serves for FUEL_DIRECTORY_MAX_AGE, then answers 503, and recovers', async () => {
    const events = await ownEvents();
    const env = { ...onMongodb(mongodbUrl()), EVENTSTORE_URL: events.url };
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
    const events = await ownEvents();
    const env = { ...onMongodb(mongod.url), EVENTSTORE_URL: events.url };
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
