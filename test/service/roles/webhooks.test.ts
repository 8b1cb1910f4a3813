import { setTimeout as sleep } from 'node:timers/promises';
import { getTasks } from 'node-cron';
import { describe, expect, onTestFinished, test } from 'vitest';
import { FuelError } from '../../../src/base/errors.ts';
import type { SubscribeOptions, SubscriptionBatch } from '../../../src/event-store/event-store.ts';
import { THREAD_ENTRY } from '../../../src/operator/serve/jobs.ts';
import type { Engines } from '../../../src/service/engines/engines.ts';
import type { MetricsJson } from '../../../src/service/ops/work-metrics.ts';
import { startJob } from '../../../src/service/threads/start-job.ts';
import { answerWith } from '../../support/deliveries/webhook-receiver.ts';
import { slowlyLeft } from '../../support/event-store/slowly-left.ts';
import { replacing } from '../../support/interposed.ts';
import { type Machine, machine, PATH } from '../../support/service/webhooks-machine.ts';
import { until } from '../../support/waiting.ts';

/** Returns engines whose log is followed in this way. */
function following(
  engines: Engines,
  next: (options: SubscribeOptions) => Promise<IteratorResult<SubscriptionBatch, undefined>>,
): Engines {
  const store = replacing(engines.store(), {
    subscribe: (options) => ({ [Symbol.asyncIterator]: () => ({ next: () => next(options) }) }),
  });
  return { ...engines, store: () => store };
}

describe('the webhooks role', () => {
  test('says that it is connected once the rows of accounts are up to date, and then delivers', async () => {
    const m = await machine();
    await m.provision();
    await m.record(501);
    const run = m.start();
    await run.connected;
    await m.settled('delivered');
    expect(m.receiver.to(PATH)[0]?.body.data.transaction.id).toBe(501);
    expect(m.receiver.deliveriesTo(PATH).size).toBe(1);
    await run.stop();
    await expect(run.ended).resolves.toBeUndefined();
  });

  test('waits for a store that is unavailable once more while it starts', async () => {
    const m = await machine();
    await m.provision();
    await m.record(501);
    const accounts = m.engines.accounts();
    let failures = 0;
    const failing = replacing(accounts, {
      async firsts(...given) {
        if (failures++ === 0) throw new FuelError('STORE_UNAVAILABLE', 'cut off');
        return accounts.firsts(...given);
      },
    });
    m.start({ ...m.engines, accounts: () => failing });
    await m.settled('delivered');
    expect(failures).toBeGreaterThan(1);
  });

  test('waits before each further attempt as its settings say', async () => {
    const m = await machine();
    m.receiver.answer(PATH, answerWith(503));
    await m.provision();
    await m.record(501);
    m.start();
    await m.settled('failed');
    const [first = 0, second = 0, third = 0] = (await m.attempts()).map(({ startedAtMs }) => startedAtMs);
    // Each wait varies by ±10 %, and its timer may be late.
    expect(second - first).toBeGreaterThanOrEqual(90);
    expect(third - second).toBeGreaterThanOrEqual(270);
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
    expect(attempted).toHaveLength(m.receiver.deliveriesTo(PATH).size);
    expect(attempted.length).toBeLessThan(12);
  });

  /** Returns engines whose subscription takes a tenth of a second to end. */
  function endingSlowly(engines: Engines) {
    const subscriptions = engines.subscriptions();
    const state = { isTaking: true };
    const slow = replacing(subscriptions, {
      consume(group, options) {
        const consumer = subscriptions.consume(group, options);
        async function* events() {
          yield* consumer;
          await sleep(100);
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
      heads: () => Promise.reject(new TypeError('a fault')),
    });
    const tasks = getTasks().size;
    await expect(m.start({ ...engines, queue: () => broken }).ended).rejects.toThrow('a fault');
    expect(state.isTaking).toBe(false);
    await until(() => getTasks().size === tasks);
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
    const memory = { youngMb: 24, oldMb: 128 };
    const accounts = startJob(host, { job: 'accounts', log: {}, memory });
    onTestFinished(() => accounts.stop());
    const webhooks = startJob(host, {
      job: 'webhooks',
      log: {},
      memory,
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
    expect(attempts?.filter(({ value }) => value !== 0)).toMatchObject([
      { labels: { outcome: 'delivered', kind: '' }, value: 1 },
    ]);
  });

  test.each([
    [
      'the delivery log',
      ({ engines }: Machine): Engines => {
        const broken = replacing(engines.queue(), {
          heads: () => Promise.reject(new TypeError('a fault')),
        });
        return { ...engines, queue: () => broken };
      },
    ],
    [
      'the ends of deliveries',
      ({ engines }: Machine): Engines => {
        let steps = 0;
        return following(engines, async () => {
          steps += 1;
          if (steps === 1)
            return { done: false, value: { events: [], position: 0, checkpoint: 0, caughtUp: true } };
          await sleep(50);
          throw new TypeError('a fault');
        });
      },
    ],
  ])('that works ends with the error of %s', async (_, broken) => {
    const m = await machine();
    await expect(m.start(broken(m)).ended).rejects.toThrow('a fault');
  });

  test('has ended when it reads the event store no more', async () => {
    const m = await machine();
    const { store, state } = slowlyLeft(m.engines.store());
    const run = m.start({ ...m.engines, store: () => store });
    await run.connected;
    await run.stop();
    expect(state.isRead).toBe(false);
  });

  test('ends when it is asked to, although the log cannot be read', async () => {
    const m = await machine();
    const run = m.start(
      following(m.engines, ({ signal }) => {
        const end = { done: true, value: undefined } as const;
        return new Promise((resolve) => signal.addEventListener('abort', () => resolve(end)));
      }),
    );
    await run.stop();
    await expect(run.ended).resolves.toBeUndefined();
  });
});
