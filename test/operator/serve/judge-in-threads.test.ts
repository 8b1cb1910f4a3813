import type { Worker } from 'node:worker_threads';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { loadConfig } from '../../../src/engines/engines.ts';
import { judgeInThreads, paysOff } from '../../../src/operator/serve/judge-in-threads.ts';
import { threadsOfCommand } from '../../../src/operator/serve/threads.ts';
import { readLog } from '../../../src/operator/verify/read-log.ts';
import { DeliveryJudge } from '../../../src/operator/verify/verify-deliveries.ts';
import { ViewJudge } from '../../../src/operator/verify/verify-view.ts';
import { keyIssued, opened, webhookSet } from '../../support/accounts/account-samples.ts';
import { DAY_MS } from '../../support/agreement/verifying.ts';
import { commandLine } from '../../support/service/command-line.ts';
import { confirmed, voided } from '../../support/transactions/e2e-samples.ts';
import { showing } from '../../support/transactions/records.ts';

test('several threads find what one finds, wherever the log is cut', async () => {
  const { account, append, done, fuel, withEngines } = commandLine();
  const config = loadConfig(process.env, 'command');
  await account(opened(), keyIssued(), keyIssued({ prefix: 'klmnopqrst' }), webhookSet());
  const ids = Array.from({ length: 12 }, (_, n) => n + 1);
  for (const id of ids)
    await append(`transaction-${id}`, [confirmed(id, { created_at: '2026-09-03T08:00:00Z' })]);
  for (const id of [1, 5]) await append(`transaction-${id}`, [voided(id)]);
  await done('projection', 'rebuild', 'transactions');
  await withEngines(async (engines) => {
    await engines.view().replace(3, []);
    await engines.view().replace(5, [showing({ id: 5 })]);
    await engines.view().replace(99, [showing({ id: 99 })]);
    const [store, queue, head] = [engines.store(), engines.queue(), await engines.store().head()];
    const logStartedAtMs = 0;
    const judges = () => {
      const settled = { store, settleMs: 0 };
      const context = {
        queue,
        clock: systemClock,
        environment: config.FUEL_ENVIRONMENT,
        retentionMs: 90 * DAY_MS,
      };
      return {
        view: new ViewJudge({ ...settled, view: engines.view() }),
        deliveries: new DeliveryJudge({ ...settled, ...context, logStartedAtMs }),
      };
    };
    const alone = judges();
    await readLog([alone.view, alone.deliveries], { store });
    const expected = [await alone.view.finish(), await alone.deliveries.finish()] as const;
    expect(expected[0].differences).toHaveLength(3);
    expect(expected[1]).toMatchObject({ owed: 12, missing: { length: 12 } });
    const together = judges();
    let judged = 0;
    const onProgress = (events: number) => {
      judged = events;
    };
    const data = { host: threadsOfCommand(config), scope: {}, withView: true, damage: [], logStartedAtMs };
    await judgeInThreads(together, { ...data, head, partEvents: 5, onProgress });
    expect(judged).toBe(14);
    const found = [await together.view.finish(), await together.deliveries.finish()] as const;
    const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1);
    expect(found[0]).toEqual(expected[0]);
    expect({ ...found[1], missing: found[1].missing.toSorted(byId) }).toEqual({
      ...expected[1],
      missing: expected[1].missing.toSorted(byId),
    });
  });
  expect((await fuel('verify')).code).toBe(1);
});

test('a short log is left to one thread, and an error of a thread is reported', async () => {
  expect(paysOff(10)).toBe(false);
  commandLine();
  const config = loadConfig(process.env, 'command');
  const data = {
    host: threadsOfCommand({ ...config, FUEL_DATA_DIR: '/dev/null/none' }),
    scope: {},
    damage: [],
    withView: true,
  };
  const options = { ...data, logStartedAtMs: undefined, head: 10, onProgress: () => undefined };
  await expect(judgeInThreads({ view: undefined, deliveries: undefined }, options)).rejects.toThrow();
});

test('of two threads of which one fails the other gets no further part, and has ended when the error is reported', async () => {
  const { append } = commandLine({ FUEL_LOG_LEVEL: 'fatal' });
  const config = loadConfig(process.env, 'command');
  for (const id of [1, 2, 3]) await append(`transaction-${id}`, [confirmed(id)]);
  const running = new Set<Worker>();
  const begun = (worker: Worker): void => {
    if (running.size === 0) worker.once('online', () => void worker.terminate());
    running.add(worker);
    worker.once('exit', () => running.delete(worker));
  };
  process.on('worker', begun);
  onTestFinished(() => void process.off('worker', begun));
  let judged = 0;
  const onProgress = (events: number): void => {
    judged = events;
  };
  const host = threadsOfCommand(config);
  const data = { host, scope: {}, withView: true, damage: [], logStartedAtMs: undefined };
  const none = { view: undefined, deliveries: undefined };
  const judging = judgeInThreads(none, { ...data, head: 3, partEvents: 1, onProgress });
  await expect(judging).rejects.toThrow(/^the thread judge-\d ended with code 1$/);
  expect(running.size).toBe(0);
  expect(judged).toBe(0);
});
