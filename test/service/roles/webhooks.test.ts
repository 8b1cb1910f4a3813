import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { getTasks } from 'node-cron';
import { Registry } from 'prom-client';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { DirectoryReach } from '../../../src/accounts/directory/live-directory.ts';
import { bindStore, trustMasterKey } from '../../../src/accounts/store-binding.ts';
import { systemClock } from '../../../src/base/clock.ts';
import type { Config } from '../../../src/base/config/config.ts';
import { silentLog } from '../../../src/base/log.ts';
import { openEngines } from '../../../src/engines/engines.ts';
import type {
  EventStore,
  SubscribeOptions,
  SubscriptionBatch,
} from '../../../src/event-store/event-store.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import { THREAD_ENTRY } from '../../../src/operator/serve/threads.ts';
import type { Engines } from '../../../src/service/engines/engines.ts';
import type { MetricsJson } from '../../../src/service/ops/work-metrics.ts';
import { workMetrics } from '../../../src/service/ops/work-metrics.ts';
import { webhooks } from '../../../src/service/roles/webhooks.ts';
import type { FromThread } from '../../../src/service/threads/job.ts';
import { startJob } from '../../../src/service/threads/start-job.ts';
import { claimOptions, delivered, newDelivery } from '../../support/deliveries/deliveries.ts';
import { listed } from '../../support/deliveries/listed.ts';
import { answerWith, WebhookReceiver } from '../../support/deliveries/webhook-receiver.ts';
import { slowlyLeft, storeWith } from '../../support/event-store/store-with.ts';
import { Operator, openForUse } from '../../support/service/operator.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { confirmed, linesOf } from '../../support/transactions/e2e-samples.ts';
import { until } from '../../support/waiting.ts';

const SOON_MS = 15_000;
const DAY_MS = 86_400_000;
const ACCOUNT = 7;
const PATH = '/hook';
const AUTHOR = { actor: 'test', command: 'test' };

afterEach(() => void vi.useRealTimers());

/** From now on the system's clock starts from this time. */
function itIs(atMs: number): void {
  vi.useFakeTimers({ toFake: ['Date'], now: atMs, shouldAdvanceTime: true });
}

/** Engines whose log is followed like this. */
function following(
  engines: Engines,
  next: (options: SubscribeOptions) => Promise<IteratorResult<SubscriptionBatch, undefined>>,
): Engines {
  const subscribe = (options: SubscribeOptions) => ({
    [Symbol.asyncIterator]: () => ({ next: () => next(options) }),
  });
  const store = new Proxy(engines.store(), {
    get: (target, name: keyof EventStore) =>
      name === 'subscribe' ? subscribe : (target[name] as (...all: unknown[]) => unknown).bind(target),
  });
  return { ...engines, store: () => store };
}

/** An adapter with these methods replaced. */
function replacing<T extends object>(target: T, methods: Partial<T>): T {
  return new Proxy(target, {
    get(whole, name) {
      const value: unknown = Reflect.get(methods, name) ?? Reflect.get(whole, name);
      return typeof value === 'function' ? value.bind(whole) : value;
    },
  });
}

type Machine = Awaited<ReturnType<typeof machine>>;

/** A machine with a customer's receiver, on which the role can be run. */
async function machine() {
  const folder = temporaryFolder();
  const receiver = await WebhookReceiver.open();
  writeFileSync(join(folder, 'ca.pem'), receiver.ca);
  const operator = new Operator({
    FUEL_DATA_DIR: join(folder, 'data'),
    FUEL_WEBHOOK_ALLOW_PRIVATE: 'true',
    FUEL_WEBHOOK_CA: join(folder, 'ca.pem'),
    FUEL_WEBHOOK_RETRY_DELAYS: '100ms,300ms',
    FUEL_DELIVERY_RETENTION_DAYS: '10',
  });
  const engines = await openEngines(operator.config, systemClock);
  const runs: (() => Promise<void>)[] = [];
  onTestFinished(async () => {
    for (const stop of runs) await stop();
    await engines.close();
  });

  const provision = () =>
    operator.provision(ACCOUNT, openForUse(ACCOUNT), { webhookUrl: receiver.url(PATH) });
  /** Records a transaction that is created now. */
  const record = (id: number) => {
    const now = new Date().toISOString();
    const event = confirmed(id, { account_id: ACCOUNT, created_at: now, confirmed_at: now });
    return operator.import(linesOf([event]), { wait: false });
  };
  /** Starts the role; `stop` asks it to end and waits until it has. */
  const start = (on: Engines = engines, config = operator.config) => {
    const stopping = new AbortController();
    const { promise: connected, resolve } = Promise.withResolvers<void>();
    const moved: number[] = [];
    let connectedAfter: number | undefined;
    const registry = new Registry();
    const context = {
      ...{ config, engines: on, log: silentLog, holder: 'this', signal: stopping.signal },
      metrics: workMetrics(registry),
      report(message: FromThread): void {
        if (message.kind === 'moved') moved.push(message.position);
        if (message.kind !== 'ready' || message.missing !== undefined) return;
        connectedAfter = moved.at(-1);
        resolve();
      },
    };
    const ended = webhooks(context, { directory: undefined });
    ended.catch(() => undefined); // each test awaits what it is about
    const stop = async (): Promise<void> => {
      stopping.abort();
      await ended.catch(() => undefined);
    };
    runs.push(stop);
    return { ended, connected, stop, moved, registry, connectedAfter: () => connectedAfter };
  };
  const switchOff = (prefix: string) =>
    operator.change(ACCOUNT, { type: 'SwitchKeyOff', accountId: ACCOUNT, prefix, reason: 'x' });
  const logged = () => listed(engines.queue(), { accountId: ACCOUNT });
  const settled = (state: string, count = 1) =>
    until(async () => (await logged()).filter((each) => each.state === state).length === count, SOON_MS);
  /** The attempts of the only delivery. */
  const attempts = async () => {
    const [only] = await logged();
    return (await engines.queue().find(only?.id ?? ''))?.attempts ?? [];
  };
  return {
    config: operator.config,
    engines,
    receiver,
    provision,
    record,
    switchOff,
    start,
    logged,
    settled,
    attempts,
  };
}

describe('the webhooks role', () => {
  test('says that it is connected once its directory is as far as the log, and then delivers', async () => {
    const m = await machine();
    await m.provision();
    await m.record(501);
    const head = await m.engines.store().head();
    const run = m.start();
    await run.connected;
    expect(run.connectedAfter()).toBeGreaterThanOrEqual(head - 1); // the transaction is no event of an account
    await m.settled('delivered');
    expect(m.receiver.to(PATH).map(({ body }) => body.data.transaction.id)).toEqual([501]);
    await run.stop();
    await expect(run.ended).resolves.toBeUndefined();
  });

  test('counts its attempts by outcome, and what is under way', async () => {
    const m = await machine();
    const { promise: asked, resolve } = Promise.withResolvers<void>();
    const { promise: answering, resolve: answer } = Promise.withResolvers<void>();
    m.receiver.answer(PATH, async (response) => {
      resolve();
      await answering;
      response.writeHead(503).end();
    });
    await m.provision();
    await m.record(501);
    const { registry } = m.start();
    const counted = async () => (await registry.metrics()).split('\n');
    await asked;
    expect(await counted()).toContain('fuel_deliveries_in_flight 1');
    answer();
    await m.settled('failed');
    m.receiver.answer(PATH, answerWith(200));
    const [only] = await m.logged();
    await m.engines.queue().redeliver(only?.id ?? '', { force: false, dueAtMs: Date.now() });
    await m.settled('delivered');
    expect(await counted()).toEqual(
      expect.arrayContaining([
        'fuel_delivery_attempts_total{outcome="failed",kind="status"} 3',
        'fuel_delivery_attempts_total{outcome="delivered",kind=""} 1',
        'fuel_delivery_attempt_duration_seconds_bucket{le="1"} 4',
        'fuel_delivery_attempt_duration_seconds_count 4',
        'fuel_redeliveries_total 1',
        'fuel_deliveries_in_flight 0',
      ]),
    );
  });

  test('waits before each further attempt as its settings say', async () => {
    const m = await machine();
    m.receiver.answer(PATH, answerWith(503));
    await m.provision();
    await m.record(501);
    m.start();
    await m.settled('failed');
    const [first = 0, second = 0, third = 0] = (await m.attempts()).map(({ startedAtMs }) => startedAtMs);
    // Each is ±10 %, and its timer may be late.
    expect(second - first).toBeGreaterThanOrEqual(90);
    expect(third - second).toBeGreaterThanOrEqual(270);
  });

  test('that is asked to stop records the attempts in progress, and begins none', async () => {
    const m = await machine();
    const { promise: asked, resolve } = Promise.withResolvers<void>();
    m.receiver.answer(PATH, (response) => {
      resolve();
      setTimeout(() => response.writeHead(503).end(), 100);
    });
    await m.provision();
    await m.record(501);
    const run = m.start();
    await asked;
    await run.stop();
    expect(await m.logged()).toMatchObject([{ state: 'pending' }]);
    expect(await m.attempts()).toMatchObject([{ number: 1 }]);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(m.receiver.to(PATH)).toHaveLength(1);
  });

  test('that is asked to stop counts no attempt that its receiver did not get', async () => {
    const m = await machine();
    const { promise: asked, resolve } = Promise.withResolvers<void>();
    m.receiver.answer(PATH, (response) => {
      resolve();
      setTimeout(() => response.writeHead(200).end(), 100);
    });
    await m.provision();
    for (let id = 501; id <= 512; id++) await m.record(id); // more than a new webhook gets at once
    const run = m.start();
    await asked;
    await run.stop();
    const attempted = (await m.logged()).filter(({ attemptsInCycle }) => attemptsInCycle > 0);
    expect(attempted).toHaveLength(m.receiver.to(PATH).length);
    expect(attempted.length).toBeLessThan(12);
  });

  test('follows the accounts until the attempts in progress have ended', async () => {
    const m = await machine();
    const [asked, answering] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    m.receiver.answer(PATH, async (response) => {
      asked.resolve();
      await answering.promise;
      response.writeHead(200).end();
    });
    await m.provision();
    await m.record(501);
    const run = m.start();
    await asked.promise;
    const stopped = run.stop();
    await m.record(502);
    const head = await m.engines.store().head();
    await until(async () => (run.moved.at(-1) ?? 0) >= head, SOON_MS);
    answering.resolve();
    await stopped;
    expect(await m.logged()).toMatchObject([{ state: 'delivered' }]);
  });

  test('has ended when the last outcome is recorded and its connections are closed', async () => {
    const m = await machine();
    const sockets: (Socket | null)[] = [];
    const asked = Promise.withResolvers<void>();
    m.receiver.answer(PATH, (response) => {
      sockets.push(response.socket);
      asked.resolve();
      response.writeHead(200).end();
    });
    await m.provision();
    await m.record(501);
    const queue = m.engines.queue();
    let recorded = false;
    const slow = replacing(queue, {
      async report(outcomes) {
        await new Promise((resolve) => setTimeout(resolve, 100));
        const reported = await queue.report(outcomes);
        recorded = true;
        return reported;
      },
    });
    const run = m.start({ ...m.engines, queue: () => slow });
    await asked.promise;
    await run.stop();
    expect(recorded).toBe(true);
    await until(async () => sockets.length === 1 && sockets[0]?.closed === true, 2_000);
  });

  /** Engines whose subscription takes a tenth of a second to end. */
  function endingSlowly(engines: Engines) {
    const subscriptions = engines.subscriptions();
    const state = { isTaking: true };
    const slow = replacing(subscriptions, {
      consume(group, options) {
        const consumer = subscriptions.consume(group, options);
        async function* events() {
          yield* consumer;
          await new Promise((resolve) => setTimeout(resolve, 100));
          state.isTaking = false;
        }
        return replacing(consumer, { [Symbol.asyncIterator]: events });
      },
    });
    return { state, engines: { ...engines, subscriptions: () => slow } };
  }

  test('has ended when it takes no event any more', async () => {
    const m = await machine();
    const { state, engines } = endingSlowly(m.engines);
    const run = m.start(engines);
    await run.connected;
    await run.stop();
    expect(state.isTaking).toBe(false);
  });

  test('that ends with an error takes no event any more either, and removes no old delivery', async () => {
    const m = await machine();
    const { state, engines } = endingSlowly(m.engines);
    const broken = replacing(engines.queue(), {
      nextDueAtMs: () => Promise.reject(new TypeError('a fault')),
    });
    const tasks = getTasks().size;
    await expect(m.start({ ...engines, queue: () => broken }).ended).rejects.toThrow('a fault');
    expect(state.isTaking).toBe(false);
    await until(async () => getTasks().size === tasks, 2_000);
  });

  test('says what it attempted until its end, where it runs in a thread', async () => {
    const m = await machine();
    const [asked, answering] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    m.receiver.answer(PATH, async (response) => {
      asked.resolve();
      await answering.promise;
      response.writeHead(200).end();
    });
    await m.provision();
    await m.record(501);
    let counted: MetricsJson = [];
    const host = {
      entry: THREAD_ENTRY,
      config: { ...m.config, FUEL_LOG_LEVEL: 'fatal' as const },
      holder: 'this',
    };
    const webhooks = startJob(host, {
      ...{ job: 'webhooks', data: { directory: undefined }, memory: { youngMb: 24, oldMb: 128 } },
      onMetrics: (metrics) => {
        counted = metrics;
      },
    });
    onTestFinished(() => webhooks.stop());
    await asked.promise;
    const stopped = webhooks.stop();
    answering.resolve();
    await stopped;
    const attempts = counted.find(({ name }) => name === 'fuel_delivery_attempts_total')?.values;
    expect(attempts).toMatchObject([{ labels: { outcome: 'delivered', kind: '' }, value: 1 }]);
  });

  test('on a remote event store waits for its own directory, and so tells how far that is', async () => {
    const m = await machine();
    await m.provision();
    const moved = vi.spyOn(DirectoryReach.prototype, 'moved');
    onTestFinished(() => moved.mockRestore());
    const run = m.start({ ...m.engines, embedded: ['view', 'queue'] });
    await run.connected;
    expect(moved.mock.calls.flat()).toEqual(run.moved);
  });

  test.each([
    [
      'the delivery log',
      ({ engines }: Machine): Engines => {
        const broken = replacing(engines.queue(), {
          nextDueAtMs: () => Promise.reject(new TypeError('a fault')),
        });
        return { ...engines, queue: () => broken };
      },
    ],
    [
      'the directory',
      ({ engines }: Machine): Engines => {
        let steps = 0;
        return following(engines, async () => {
          steps += 1;
          if (steps === 1)
            return { done: false, value: { events: [], position: 0, checkpoint: 0, caughtUp: true } };
          await new Promise((resolve) => setTimeout(resolve, 50));
          throw new TypeError('a fault');
        });
      },
    ],
  ])('that works ends with the error of %s', async (_, broken) => {
    const m = await machine();
    await expect(m.start(broken(m)).ended).rejects.toThrow('a fault');
  });

  test('has ended when its directory reads the event store no more', async () => {
    const m = await machine();
    const { store, state } = slowlyLeft(m.engines.store());
    const run = m.start({ ...m.engines, store: () => store });
    await run.connected;
    await run.stop();
    expect(state.isRead).toBe(false);
  });

  test('ends what a key is owed as soon as it is switched off, not when the next attempt is due', async () => {
    const m = await machine();
    m.receiver.answer(PATH, answerWith(503));
    const { prefix } = await m.provision();
    await m.record(501);
    m.start(m.engines, { ...m.config, FUEL_WEBHOOK_RETRY_DELAYS: [3_600_000, 3_600_000] });
    await until(async () => (await m.attempts()).length === 1, SOON_MS);
    await m.switchOff(prefix);
    await m.settled('failed');
  });

  test('ends when it is asked to, although its directory has not caught up', async () => {
    const m = await machine();
    const run = m.start(
      following(m.engines, ({ signal }) => {
        const end = { done: true, value: undefined } as const;
        return new Promise((resolve) => signal.addEventListener('abort', () => resolve(end)));
      }),
    );
    await run.stop();
    await expect(run.ended).resolves.toBeUndefined();
    expect(run.connectedAfter()).toBeUndefined();
  });

  test('ends with the error that its directory ends with', async () => {
    const m = await machine();
    const run = m.start(following(m.engines, () => Promise.reject(new TypeError('a fault'))));
    await expect(run.ended).rejects.toThrow('a fault');
  });
});

describe('a master key that is not given any more', () => {
  test('while a webhook needs it: the role does not start, and no delivery fails for it', async () => {
    const m = await machine();
    await m.provision();
    await m.record(501);
    const rotated: Config = { ...m.config, FUEL_MASTER_KEY: [randomBytes(32)] };
    await expect(m.start(m.engines, rotated).ended).rejects.toMatchObject({
      code: 'SECRET_UNREADABLE',
      message: expect.stringContaining('FUEL_MASTER_KEY'),
    });
    expect(await m.logged()).toEqual([]);
    m.start();
    await m.settled('delivered');
  });

  test('and that this store never had: the role starts, and what can not be signed for that key ends as failed', async () => {
    const m = await machine();
    await bindStore(m.engines.store(), m.config, { clock: systemClock });
    await m.provision();
    await m.record(501);
    const stream = `account-${ACCOUNT}`;
    const history = await m.engines.store().readStream(stream);
    const set = JSON.stringify(history.find(({ type }) => type === 'WebhookUrlSet')?.data);
    const data = JSON.parse(set.replace(/"master_key_id":"\w+"/, '"master_key_id":"deadbeef"'));
    const event = newEvent({ type: 'WebhookSecretRewrapped', data }, AUTHOR, Date.now());
    await m.engines.store().append([{ stream, expected: 'any', events: [event] }]);
    const run = m.start();
    await m.settled('failed');
    expect(await m.logged()).toMatchObject([{ reason: expect.stringContaining('could not be signed') }]);
    await run.stop();
    await expect(run.ended).resolves.toBeUndefined();
  });

  test('is noticed before any attempt: a delivery that is due stays as it is', async () => {
    const m = await machine();
    m.receiver.answer(PATH, answerWith(503));
    await m.provision();
    await m.record(501);
    const first = m.start();
    await until(async () => (await m.attempts()).length > 0, SOON_MS);
    await first.stop();
    const before = await m.attempts();
    const store = m.engines.store();
    const slow = storeWith(store, {
      async readStream(...given) {
        await new Promise((resolve) => setTimeout(resolve, 150)); // longer than until the next attempt is due
        return store.readStream(...given);
      },
    });
    const rotated: Config = { ...m.config, FUEL_MASTER_KEY: [randomBytes(32)] };
    await expect(m.start({ ...m.engines, store: () => slow }, rotated).ended).rejects.toMatchObject({
      code: 'SECRET_UNREADABLE',
    });
    expect([await m.logged(), await m.attempts()]).toMatchObject([[{ state: 'pending' }], before]);
  });

  test('and was said to be lost: the role starts, and what can not be signed ends as failed', async () => {
    const m = await machine();
    await m.provision();
    await m.record(501);
    const config: Config = { ...m.config, FUEL_MASTER_KEY: [randomBytes(32)] };
    await trustMasterKey(m.engines.store(), config, { author: AUTHOR, reason: 'lost', clock: systemClock });
    m.start(m.engines, config);
    await m.settled('failed');
    expect(await m.logged()).toMatchObject([{ reason: expect.stringContaining('could not be signed') }]);
    expect(m.receiver.to(PATH)).toEqual([]);
  });
});

describe('the retention of the delivery log', () => {
  test('is how long after its recording an event is still fanned out', async () => {
    const m = await machine();
    const nowMs = Date.now();
    itIs(nowMs - 20 * DAY_MS);
    await m.provision();
    itIs(nowMs - 10.1 * DAY_MS);
    await m.record(501);
    itIs(nowMs - 9.9 * DAY_MS);
    await m.record(502);
    itIs(nowMs);
    m.start();
    await m.settled('delivered');
    expect((await m.logged()).map(({ transactionId }) => transactionId)).toEqual([502]);
  });

  test('is how long an ended delivery is kept, which is judged each hour', async () => {
    const m = await machine();
    await m.provision();
    // Every hour at 23 minutes: a moment before it.
    const nowMs = new Date().setMinutes(22, 59, 0);
    const queue = m.engines.queue();
    for (const [n, endedAtMs] of [
      [501, nowMs - 10.1 * DAY_MS],
      [502, nowMs - 9.9 * DAY_MS],
    ] as const) {
      await queue.enqueue([newDelivery(n, { createdAtMs: endedAtMs })]);
      const [claim] = await queue.claim(claimOptions(endedAtMs));
      if (claim !== undefined) await queue.report([delivered(claim, endedAtMs)]);
    }
    expect(await m.logged()).toHaveLength(2);
    itIs(nowMs);
    await m.start().connected;
    await until(async () => (await m.logged()).length < 2, SOON_MS);
    expect((await m.logged()).map(({ transactionId }) => transactionId)).toEqual([502]);
  });
});
