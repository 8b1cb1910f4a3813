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

/** A thread that runs this text, with `parentPort`, `workerData`, `resourceLimits` and `result` in scope. */
function thread(text: string, env: Readonly<Record<string, string>> = {}) {
  const file = join(temporaryFolder(), 'job.mjs');
  writeFileSync(
    file,
    `import { parentPort, resourceLimits, workerData } from 'node:worker_threads';
     const result = (value) => parentPort.postMessage({ kind: 'result', value });
     ${text}`,
  );
  const results: unknown[] = [];
  const { promise: first, resolve } = Promise.withResolvers<unknown>();
  const host = { entry: pathToFileURL(file), config: loadConfig(env, 'command'), holder: 'this' };
  const started = startJob(host, {
    job: 'cook',
    memory: { youngMb: 12, oldMb: 64 },
    onResult: (value) => {
      results.push(value);
      resolve(value);
    },
  });
  onTestFinished(() => started.stop());
  return { ...started, missing: () => [started.missing, started.wasReady], results, first };
}

const pending = Symbol('pending');
const settled = (promise: Promise<unknown>) =>
  Promise.race([promise.catch((error: unknown) => error), Promise.resolve(pending)]);

describe('a job in a thread', () => {
  test('gets the configuration, and its results arrive', async () => {
    const { first } = thread(`result(workerData.host.config.FUEL_LOG_LEVEL); ${ENDS_WHEN_ASKED}`, {
      FUEL_LOG_LEVEL: 'warn',
    });
    expect(await first).toBe('warn');
  });

  test('that is asked to stop has stopped when `stop` resolves, and has not failed', async () => {
    const { stop, failed, results, first } = thread(
      `result('begun');
       parentPort.once('message', () => setTimeout(() => { result('ended'); parentPort.close(); }, 30));`,
    );
    await first;
    expect(results).toEqual(['begun']);
    await stop();
    expect(results).toEqual(['begun', 'ended']);
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
    expect(await thread(`result(resourceLimits); ${ENDS_WHEN_ASKED}`).first).toMatchObject({
      maxOldGenerationSizeMb: 64,
      maxYoungGenerationSizeMb: 12,
    });
    const of = async (env: Readonly<Record<string, string>>) =>
      youngMb(await openEngines(loadConfig(env, 'command'), systemClock));
    expect(await of({})).toBe(12);
    expect(await of({ EVENTSTORE_URL: 'esdb://a:2113' })).toBe(32);
    expect(await of({ MONGODB_URL: 'mongodb://a' })).toBe(32);
  });

  test('is ready and listens when it says so', async () => {
    const started = thread(
      `parentPort.postMessage({ kind: 'ready', missing: undefined });
       parentPort.postMessage({ kind: 'listening' }); ${ENDS_WHEN_ASKED}`,
    );
    await started.listening;
    expect(started.missing()).toEqual([undefined, true]);
  });

  test('lacks what it said last, and was ready once it lacked nothing', async () => {
    const ready = (missing: string) => `parentPort.postMessage({ kind: 'ready', missing: ${missing} });`;
    const started = thread(`
      ${ready("'the store'")} result(1); parentPort.once('message', () => {
        ${ready('undefined')} ${ready("'the store again'")} parentPort.postMessage({ kind: 'listening' });
        ${ENDS_WHEN_ASKED}
      });`);
    await started.first;
    expect(started.missing()).toEqual(['the store', false]);
    started.tell('continue');
    await started.listening;
    expect(started.missing()).toEqual(['the store again', true]);
  });
});
