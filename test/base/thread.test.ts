import { getEventListeners } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { expect, test } from 'vitest';
import { FuelError } from '../../src/base/errors.ts';
import { startThread } from '../../src/base/thread.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** A thread that runs this text, with `parentPort` in scope. */
function thread(text: string, signal?: AbortSignal) {
  const file = join(temporaryFolder(), 'thread.mjs');
  writeFileSync(file, `import { parentPort } from 'node:worker_threads';\n${text}`);
  const messages: unknown[] = [];
  const { ended, post } = startThread<unknown>({
    name: 'the kitchen',
    entry: pathToFileURL(file),
    data: {},
    memory: { youngMb: 24, oldMb: 64 },
    onMessage: (message) => messages.push(message),
    ...(signal && { signal }),
  });
  return { ended, post, messages };
}

const ECHO_ONCE =
  "parentPort.once('message', (message) => { parentPort.postMessage(message); parentPort.close(); });";

test('a thread that ends has reported everything when its end resolves', async () => {
  const { ended, post, messages } = thread(ECHO_ONCE);
  post('soup');
  await ended;
  expect(messages).toEqual(['soup']);
});

test('a signal stops a thread, also one that had aborted before', async () => {
  const stopping = new AbortController();
  const early = thread(ECHO_ONCE, stopping.signal);
  stopping.abort();
  const late = thread(ECHO_ONCE, stopping.signal);
  await Promise.all([early.ended, late.ended]);
  expect([early.messages, late.messages]).toEqual([['stop'], ['stop']]);
});

test('an end with another code than 0 is a failure, and an error keeps its code', async () => {
  await expect(thread('process.exit(3)').ended).rejects.toThrow('the kitchen ended with code 3');
  await expect(thread("throw new TypeError('burnt')").ended).rejects.toThrow('burnt');
  const coded = thread("throw Object.assign(new Error('no gas'), { code: 'STORE_UNAVAILABLE' })").ended;
  const failure = await coded.catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(FuelError);
  expect(failure).toMatchObject({ code: 'STORE_UNAVAILABLE', message: 'no gas' });
});

const GROW_AND_REPORT = `
import { getHeapSpaceStatistics } from 'node:v8';
const kept = [];
for (let n = 0; n < 1_000_000; n++) kept[n % 20_000] = { n, text: [n] };
const young = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space');
parentPort.postMessage(young.space_size / 2 ** 20);`;

test('a thread has the young generation that it is given, also where the main thread has a small one', async () => {
  setFlagsFromString('--max-semi-space-size=8'); // as bin/fuel does
  const { ended, messages } = thread(GROW_AND_REPORT);
  await ended;
  expect(messages[0]).toBeGreaterThan(12);
});

test('a thread that has ended leaves no listener on the signal that could have stopped it', async () => {
  const { signal } = new AbortController();
  await thread('', signal).ended;
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});
