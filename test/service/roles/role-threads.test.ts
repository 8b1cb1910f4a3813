import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { loadConfig } from '../../../src/base/config/config.ts';
import { startRoleThread } from '../../../src/service/roles/role-threads.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const ENDS_WHEN_ASKED = "parentPort.once('message', () => parentPort.close());";

/** A thread that runs this text, with `parentPort`, `workerData` and `resourceLimits` in scope. */
function thread(text: string, env: Readonly<Record<string, string>> = {}) {
  const file = join(temporaryFolder(), 'role.mjs');
  writeFileSync(
    file,
    `import { parentPort, resourceLimits, workerData } from 'node:worker_threads';\n${text}`,
  );
  const messages: unknown[] = [];
  const { promise: first, resolve } = Promise.withResolvers<unknown>();
  const started = startRoleThread<unknown>({
    role: 'cook',
    entry: pathToFileURL(file),
    data: { config: loadConfig(env, 'command') },
    heapMb: 64,
    onMessage: (message) => {
      messages.push(message);
      resolve(message);
    },
  });
  onTestFinished(() => started.stop());
  return { ...started, messages, first };
}

const pending = Symbol('pending');
const settled = (promise: Promise<unknown>) =>
  Promise.race([promise.catch((error: unknown) => error), Promise.resolve(pending)]);

describe('a role in a thread', () => {
  test('gets its data, and its messages arrive', async () => {
    const { first } = thread(`parentPort.postMessage(workerData.config.FUEL_LOG_LEVEL); ${ENDS_WHEN_ASKED}`, {
      FUEL_LOG_LEVEL: 'warn',
    });
    expect(await first).toBe('warn');
  });

  test('that is asked to stop has stopped when `stop` resolves, and has not failed', async () => {
    const { stop, failed, messages, first } = thread(
      `parentPort.postMessage('begun');
       parentPort.once('message', () => setTimeout(() => { parentPort.postMessage('ended'); parentPort.close(); }, 30));`,
    );
    await first;
    expect(messages).toEqual(['begun']);
    await stop();
    expect(messages).toEqual(['begun', 'ended']);
    expect(await settled(failed)).toBe(pending);
  });

  test('that ends without being asked has failed, also without an error', async () => {
    const { failed } = thread('process.exit(0)');
    await expect(failed).rejects.toThrow('the thread of the role cook ended without being asked');
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

  test('has the heap that it is given, and room for short-lived objects where an engine is remote', async () => {
    const tellLimits = `parentPort.postMessage(resourceLimits); ${ENDS_WHEN_ASKED}`;
    const limits = async (env?: Readonly<Record<string, string>>) =>
      (await thread(tellLimits, env).first) as object;
    const embedded = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 12 };
    const remote = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 32 };
    expect(await limits()).toMatchObject(embedded);
    expect(await limits({ EVENTSTORE_URL: 'esdb://a:2113' })).toMatchObject(remote);
    expect(await limits({ MONGODB_URL: 'mongodb://a' })).toMatchObject(remote);
  });
});
