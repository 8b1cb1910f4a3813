import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { bindStore, trustMasterKey } from '../../../src/accounts/store-binding.ts';
import { type Engines, openEngines } from '../../../src/app.ts';
import { systemClock } from '../../../src/clock.ts';
import type { Config } from '../../../src/config/config.ts';
import type {
  EventStore,
  SubscribeOptions,
  SubscriptionBatch,
} from '../../../src/event-store/event-store.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import { silentLog } from '../../../src/log.ts';
import { AttemptMeter } from '../../../src/service/roles/attempt-meter.ts';
import { runWebhooks } from '../../../src/service/roles/run-webhooks.ts';
import { claimOptions, delivered, newDelivery } from '../../support/deliveries/deliveries.ts';
import { answerWith, WebhookReceiver } from '../../support/deliveries/webhook-receiver.ts';
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
    const meter = new AttemptMeter();
    const ended = runWebhooks({
      config,
      meter,
      engines: on,
      log: silentLog,
      holder: 'this',
      snapshot: undefined,
      signal: stopping.signal,
      onConnected: () => {
        connectedAfter = moved.at(-1);
        resolve();
      },
      onMoved: (position) => void moved.push(position),
    });
    ended.catch(() => undefined); // each test awaits what it is about
    const stop = async (): Promise<void> => {
      stopping.abort();
      await ended.catch(() => undefined);
    };
    runs.push(stop);
    return { ended, connected, stop, moved, meter, connectedAfter: () => connectedAfter };
  };
  const listed = () => engines.queue().list({ accountId: ACCOUNT }, { limit: 100 });
  const settled = (state: string, count = 1) =>
    until(async () => (await listed()).filter((each) => each.state === state).length === count, SOON_MS);
  /** The attempts of the only delivery. */
  const attempts = async () => {
    const [only] = await listed();
    return (await engines.queue().find(only?.id ?? ''))?.attempts ?? [];
  };
  return { config: operator.config, engines, receiver, provision, record, start, listed, settled, attempts };
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
    const { meter } = m.start();
    await asked;
    expect(meter.take()).toMatchObject({ attempts: [], inFlight: 1 });
    answer();
    await m.settled('failed');
    m.receiver.answer(PATH, answerWith(200));
    const [only] = await m.listed();
    await m.engines.queue().redeliver(only?.id ?? '', { force: false, dueAtMs: Date.now() });
    await m.settled('delivered');
    const { attempts, durationsSeconds, redeliveries, inFlight } = meter.take();
    expect(attempts).toEqual([
      { outcome: 'failed', kind: 'status', count: 3 },
      { outcome: 'delivered', kind: '', count: 1 },
    ]);
    expect([durationsSeconds.length, redeliveries, inFlight]).toEqual([4, 1, 0]);
    expect(Math.max(...durationsSeconds)).toBeLessThan(1);
    expect(meter.take()).toMatchObject({ attempts: [], redeliveries: 0, durationsSeconds: { length: 0 } });
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
    expect(await m.listed()).toMatchObject([{ state: 'pending' }]);
    expect(await m.attempts()).toMatchObject([{ number: 1 }]);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(m.receiver.to(PATH)).toHaveLength(1);
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
    expect(await m.listed()).toEqual([]);
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
    expect(await m.listed()).toMatchObject([{ reason: expect.stringContaining('could not be signed') }]);
    await run.stop();
    await expect(run.ended).resolves.toBeUndefined();
  });

  test('and was said to be lost: the role starts, and what can not be signed ends as failed', async () => {
    const m = await machine();
    await m.provision();
    await m.record(501);
    const config: Config = { ...m.config, FUEL_MASTER_KEY: [randomBytes(32)] };
    await trustMasterKey(m.engines.store(), config, { author: AUTHOR, reason: 'lost', clock: systemClock });
    m.start(m.engines, config);
    await m.settled('failed');
    expect(await m.listed()).toMatchObject([{ reason: expect.stringContaining('could not be signed') }]);
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
    expect((await m.listed()).map(({ transactionId }) => transactionId)).toEqual([502]);
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
    expect(await m.listed()).toHaveLength(2);
    itIs(nowMs);
    await m.start().connected;
    await until(async () => (await m.listed()).length < 2, SOON_MS);
    expect((await m.listed()).map(({ transactionId }) => transactionId)).toEqual([502]);
  });
});
