import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { type Customer, PushService } from '../support/deliveries/push-service.ts';
import { answerWith, type Hook } from '../support/deliveries/webhook-receiver.ts';
import { Mongod } from '../support/engines/mongod.ts';
import { describeWithMongodb } from '../support/engines/mongodb.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import {
  type EventLine,
  idsOf,
  linesOf,
  minutely,
  openAccount,
  SEPTEMBER,
} from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';
import { EVENT_STORE_NAME, type EventStoreNode, startEventStoreNode } from './event-store-node.ts';
import { type Pulled, Traffic } from './traffic.ts';

const CUSTOMERS = 3;
/** Imported while an engine is hurt. */
const IMPORTED = 4_000;
const IMPORTED_ACCOUNT = 7;
const AWAY_MS = 6_000;
const FROZEN_MS = 20_000;
const RECOVERED_WITHIN_MS = 30_000;
const SETTLED_WITHIN_MS = 60_000;
/** An attempt that was under way when the engine was hurt began at most this long before. */
const ATTEMPT_MS = 1_000;
const ANSWERED_WITHIN_MS = 2_500;
/** The share of answers that must come in time: the load leaves the machine little to spare. */
const IN_TIME = 0.99;
const ERROR_LEVEL = 50;

describeWithMongodb(`two processes of each role, under load, on ${EVENT_STORE_NAME} and MongoDB`, () => {
  let events: EventStoreNode;
  let mongod: Mongod;
  let push: PushService;
  let processes: ServiceProcess[] = [];
  let apis: ServiceProcess[] = [];
  const customers: Customer[] = [];
  let key = '';
  let traffic: Traffic;
  let imported = 0;
  /** From when an engine was hurt until everything went on. */
  const outages: { readonly fromMs: number; readonly untilMs: number }[] = [];

  beforeAll(async () => {
    events = await startEventStoreNode();
    mongod = await new Mongod({ binary: inject('mongodBinary') ?? '' }).start();
    const engines = {
      EVENTSTORE_URL: events.url,
      MONGODB_URL: mongod.url,
      FUEL_WEBHOOK_RETRY_DELAYS: '1s,5s',
    };
    push = await PushService.prepare(engines, ['--role', 'api']);
    const { dataDir } = push.service;
    const beside = ['api', 'projector', 'projector', 'webhooks', 'webhooks'].map(
      (role) => new ServiceProcess({ env: push.env, dataDir, args: ['--role', role] }),
    );
    processes = [push.service, ...beside];
    apis = processes.slice(0, 2);
    for (const process of processes) await process.start();
    ({ key } = await openAccount(push.service, { id: IMPORTED_ACCOUNT }));
    for (let account = 101; account <= 100 + CUSTOMERS; account++)
      customers.push(await push.customer(account));
    for (const { path } of customers) {
      push.receiver.answer(path, (response, hook) => void setTimeout(answerWith(200), 20, response, hook));
    }
    traffic = new Traffic({ push, customers, apis, key });
    await traffic.delivered(RECOVERED_WITHIN_MS);
  }, 90_000);

  afterAll(async () => {
    for (const process of processes) process.signal('SIGKILL');
    await push.closeFiles();
    await mongod.remove();
    await events.remove();
  });

  /** Begins an import, hurts an engine in the middle of it, mends it, and sees that all of it goes on. */
  async function through({
    hurt,
    mend,
    awayMs,
  }: {
    hurt: Work;
    mend: Work;
    awayMs: number;
  }): Promise<Pulled[]> {
    const lines = minutely(IMPORTED, 1_000_000 + imported);
    const first = `transaction-${1_000_000 + imported + IMPORTED / 4}`;
    const importing = importAll(lines);
    importing.catch(() => undefined); // told where it is awaited
    await push.service.operator.with(async (engines) => {
      await until(async () => (await engines.store().readStream(first)).length > 0, 20_000);
    });
    const fromMs = Date.now();
    await hurt();
    await sleep(awayMs);
    const away = traffic.pulled.filter(({ atMs }) => atMs > fromMs);
    await mend();
    await traffic.delivered(RECOVERED_WITHIN_MS);
    await importing;
    for (const process of processes) await assertAlive(process);
    outages.push({ fromMs, untilMs: Date.now() });
    return away;
  }

  /** As an operator would: the same file again, until all of it is in. */
  async function importAll(lines: readonly EventLine[]): Promise<void> {
    const stdin = linesOf(lines);
    for (;;) {
      const result = await push.service.fuel(['transaction', 'import', '-', '--json'], { stdin });
      if (result.code === 0) {
        const { recorded, unchanged, refused } = result.json;
        expect([recorded + unchanged, refused]).toEqual([lines.length, 0]);
        imported += lines.length;
        return;
      }
      expect(result.stderr).toMatch(/EventStoreDB|MongoDB/);
    }
  }

  it('EventStoreDB killed and started again: the API serves throughout', async () => {
    const away = await through({ hurt: () => events.kill(), mend: () => events.start(), awayMs: AWAY_MS });
    expect(statuses(away)).toEqual(['200']);
  }, 120_000);

  it('MongoDB killed and started again: the API answers 503 in time meanwhile', async () => {
    const mend = async () => void (await mongod.start());
    const away = await through({ hurt: () => mongod.kill(), mend, awayMs: AWAY_MS });
    expect(statuses(away)).toContain('503 SERVICE_UNAVAILABLE');
  }, 120_000);

  it('both killed at once, and started again one after the other', async () => {
    const hurt = async () => void (await Promise.all([mongod.kill(), events.kill()]));
    const mend = async () => {
      await mongod.start();
      await sleep(2_000);
      await events.start();
    };
    await through({ hurt, mend, awayMs: AWAY_MS });
  }, 120_000);

  it('MongoDB killed twice in a row', async () => {
    const hurt = async () => {
      await mongod.kill();
      await mongod.start();
      await mongod.kill();
    };
    await through({ hurt, mend: async () => void (await mongod.start()), awayMs: 1_000 });
  }, 120_000);

  it('EventStoreDB frozen for 20 s', async () => {
    await through({ hurt: async () => events.freeze(), mend: async () => events.thaw(), awayMs: FROZEN_MS });
  }, 120_000);

  it('MongoDB frozen for 20 s: the API answers 503 in time meanwhile', async () => {
    const hurt = async () => mongod.signal('SIGSTOP');
    const mend = async () => mongod.signal('SIGCONT');
    const away = await through({ hurt, mend, awayMs: FROZEN_MS });
    expect(statuses(away)).toContain('503 SERVICE_UNAVAILABLE');
  }, 120_000);

  it('no process ended, and none was asked for in vain: each answer was a page, or 503 in time', async () => {
    await traffic.stop();
    for (const process of processes) await assertAlive(process);
    expect(statuses(traffic.pulled)).toEqual(['200', '503 SERVICE_UNAVAILABLE']);
    const tookMs = traffic.pulled.map((answer) => answer.tookMs).sort((a, b) => a - b);
    expect(tookMs[Math.floor(tookMs.length * IN_TIME)]).toBeLessThan(ANSWERED_WITHIN_MS);
    for (const { logLines } of processes) {
      expect(logLines.filter(({ level }) => Number(level) >= ERROR_LEVEL)).toEqual([]);
    }
  });

  it('everything is delivered once, under one id; an attempt is repeated only where an outage hid its outcome', async () => {
    for (const { account, path } of customers) {
      const ids = traffic.recorded.get(account) ?? new Set();
      await push.reached(account, 'delivered', ids.size, SETTLED_WITHIN_MS);
      const byDelivery = Map.groupBy(push.receiver.to(path), ({ body }) => String(body.id));
      const transactions = [...byDelivery.values()].map(([hook]) => hook?.body.data.transaction.id);
      expect(transactions.length).toBe(ids.size);
      expect(new Set(transactions)).toEqual(ids);
      for (const [id, hooks] of byDelivery) {
        const unrecorded = hooks.length - (await push.attemptsOf(id));
        expect(unrecorded).toBeLessThanOrEqual(hooks.filter(duringAnOutage).length);
      }
    }
  }, 120_000);

  it('events, view and delivery log agree, and what was imported is shown to the last transaction', async () => {
    const verified = await push.service.fuel(['verify', '--json']);
    const pushed = [...traffic.recorded.values()].reduce((sum, ids) => sum + ids.size, 0);
    expect([verified.code, verified.json]).toEqual([
      0,
      {
        view: { checked: imported + pushed, differences: 0 },
        deliveries: expect.objectContaining({ owed: pushed, delivered: pushed, missing: 0, surplus: 0 }),
      },
    ]);
    for (const api of apis) {
      const ids: number[] = [];
      for (let cursor = ''; ; ) {
        const { body } = await api.get(`/transactions?${SEPTEMBER}&limit=100${cursor}`, { key });
        ids.push(...idsOf(body));
        if (!body.pagination.has_more) break;
        cursor = `&cursor=${encodeURIComponent(body.pagination.next_cursor)}`;
      }
      expect(ids.length).toBe(imported);
      expect(new Set(ids).size).toBe(imported);
    }
    for (const process of processes) expect(await process.stop()).toBe(0);
  }, 120_000);

  function duringAnOutage({ atMs }: Hook): boolean {
    return outages.some(({ fromMs, untilMs }) => atMs > fromMs - ATTEMPT_MS && atMs < untilMs);
  }
});

type Work = () => Promise<void>;

async function assertAlive(process: ServiceProcess): Promise<void> {
  const { status } = await process.ops('/healthz').catch(() => ({ status: undefined }));
  if (status !== 200) throw new Error(`a process has ended\n${process.output}`);
}

/** Each kind of answer once, in order. */
function statuses(pulled: readonly Pulled[]): string[] {
  return [...new Set(pulled.map(({ status, code = '' }) => `${status} ${code}`.trim()))].sort();
}
