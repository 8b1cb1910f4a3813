import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { StartedParts } from '../../src/service/started-parts.ts';
import { memoryLog } from '../support/service/api.ts';

function parts() {
  const lines: Record<string, unknown>[] = [];
  const stopped: string[] = [];
  const started = new StartedParts(memoryLog(lines));
  const add = (name: string, stop: () => void = () => undefined): void => {
    started.add(name, {
      stop: async () => {
        stop();
        stopped.push(name);
      },
    });
  };
  return { started, add, stopped, lines };
}

function refuse(why: string): () => never {
  return () => {
    throw new Error(why);
  };
}

test('parts are stopped in the reverse order of their start, once', async () => {
  const { started, add, stopped } = parts();
  for (const name of ['stores', 'accounts', 'API']) add(name);
  await started.stop();
  await started.stop();
  expect(stopped).toEqual(['API', 'accounts', 'stores']);
});

test('one that does not stop keeps none of the others from it, and every failure is reported', async () => {
  const { started, add, stopped, lines } = parts();
  add('stores', refuse('locked'));
  add('accounts');
  add('API', refuse('in use'));
  const failure = await started.stop().catch((error: unknown) => error);
  expect(stopped).toEqual(['accounts']);
  expect(failure).toMatchObject({ error: new Error('locked'), suppressed: new Error('in use') });
  expect(lines.map(({ part, level }) => [part, level])).toEqual([
    ['API', 50],
    ['accounts', 20],
    ['stores', 50],
  ]);
});

test('a part that failed while the others were still starting is reported to a later caller', async () => {
  const { started } = parts();
  started.add('accounts', { stop: () => undefined, failed: Promise.reject(new Error('first')) });
  await nextTurn(); // an unhandled rejection would end the test run here
  started.add('API', { stop: () => undefined, failed: Promise.reject(new Error('second')) });
  await nextTurn();
  await expect(started.failed).rejects.toThrow('first');
});

test('while all parts work, none is reported as failed', async () => {
  const { started } = parts();
  started.add('API', { stop: () => undefined, failed: new Promise<never>(() => undefined) });
  started.add('report', { stop: () => undefined });
  const pending = Symbol('pending');
  expect(await Promise.race([started.failed, nextTurn(pending)])).toBe(pending);
});
