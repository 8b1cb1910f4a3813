import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { loadConfig, openEngines } from '../../../src/engines/engines.ts';
import { youngMb } from '../../../src/service/threads/memory.ts';
import { startJob } from '../../../src/service/threads/start-job.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const ENDS_WHEN_ASKED = "parentPort.once('message', () => parentPort.close());";

/** A thread that runs this text, with `parentPort`, `workerData`, `resourceLimits` and `report` of a number in scope. */
function thread(text: string, env: Readonly<Record<string, string>> = {}) {
  const file = join(temporaryFolder(), 'job.mjs');
  writeFileSync(
    file,
    `import { parentPort, resourceLimits, workerData } from 'node:worker_threads';
     const report = (position) => parentPort.postMessage({ kind: 'metrics', metrics: position });
     ${text}`,
  );
  const reports: number[] = [];
  const { promise: first, resolve } = Promise.withResolvers<number>();
  const host = { entry: pathToFileURL(file), config: loadConfig(env, 'command'), holder: 'this' };
  const started = startJob(host, {
    job: 'cook',
    log: {},
    memory: { youngMb: 12, oldMb: 64 },
    onMetrics(metrics) {
      const reported = Number(metrics);
      reports.push(reported);
      resolve(reported);
    },
  });
  onTestFinished(() => started.stop());
  return { ...started, missing: () => [started.missing, started.wasReady], reports, first };
}

const pending = Symbol('pending');
const settled = (promise: Promise<unknown>) =>
  Promise.race([promise.catch((error: unknown) => error), Promise.resolve(pending)]);

describe('a job in a thread', () => {
  test('gets the configuration, and what it reports arrives', async () => {
    const { first } = thread(
      `report(workerData.host.config.FUEL_DELIVERY_RETENTION_DAYS); ${ENDS_WHEN_ASKED}`,
      { FUEL_DELIVERY_RETENTION_DAYS: '17' },
    );
    expect(await first).toBe(17);
  });

  test('that is asked to stop has stopped when `stop` resolves, and has not failed', async () => {
    const { stop, failed, reports, first } = thread(
      `report(1);
       parentPort.once('message', () => setTimeout(() => { report(2); parentPort.close(); }, 30));`,
    );
    await first;
    expect(reports).toEqual([1]);
    await stop();
    expect(reports).toEqual([1, 2]);
    expect(await settled(failed)).toBe(pending);
  });

  test('that ends without being asked has failed, also without an error', async () => {
    const { failed } = thread('process.exit(0)');
    await expect(failed).rejects.toThrow('the thread cook ended without being asked');
  });

  test('that throws has failed with its error', async () => {
    const { failed } = thread("throw new TypeError('burnt')");
    await expect(failed).rejects.toThrow('burnt');
  });

  test('that fails while it is asked to stop has failed', async () => {
    const { stop, failed } = thread("parentPort.once('message', () => { throw new Error('burnt'); });");
    await stop();
    await expect(failed).rejects.toThrow('burnt');
  });

  test('has the memory that it is given, with room for short-lived objects where an engine is remote', async () => {
    const limits = ['maxOldGenerationSizeMb', 'maxYoungGenerationSizeMb'].map(
      (name) => thread(`report(resourceLimits.${name}); ${ENDS_WHEN_ASKED}`).first,
    );
    expect(await Promise.all(limits)).toEqual([64, 12]);
    const of = async (env: Readonly<Record<string, string>>) =>
      youngMb(await openEngines(loadConfig(env, 'command'), systemClock));
    expect(await of({})).toBe(12);
    expect(await of({ EVENTSTORE_URL: 'esdb://a:2113' })).toBe(32);
    expect(await of({ MONGODB_URL: 'mongodb://a' })).toBe(32);
  });

  test.each<[string, readonly string[], [string | undefined, boolean]]>([
    ['what it said last', ["'the store'"], ['the store', false]],
    ['nothing, when it says so', ['undefined'], [undefined, true]],
    ['something again, and was ready', ['undefined', "'the store again'"], ['the store again', true]],
  ])('lacks %s', async (_, said, expected) => {
    const ready = (missing: string) => `parentPort.postMessage({ kind: 'ready', missing: ${missing} });`;
    const started = thread(`${said.map(ready).join(' ')} report(1); ${ENDS_WHEN_ASKED}`);
    await started.first;
    expect(started.missing()).toEqual(expected);
  });
});
