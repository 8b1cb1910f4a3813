import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { silentLog } from '../../src/base/log.ts';
import { loadConfig, openEngines } from '../../src/engines/engines.ts';
import type { EventStore } from '../../src/event-store/event-store.ts';
import { newEvent } from '../../src/event-store/new-event.ts';
import type { Engines } from '../../src/service/engines/engines.ts';
import { startDirectory } from '../../src/service/start-directory.ts';
import { StartedParts } from '../../src/service/started-parts.ts';
import { opened } from '../support/accounts/account-samples.ts';
import { replacing } from '../support/interposed.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** Starts a directory on stores with some steps replaced. */
async function start(steps: (store: EventStore) => Partial<EventStore> = () => ({})) {
  const config = loadConfig({ FUEL_DATA_DIR: join(temporaryFolder(), 'data') }, 'command');
  const engines = await openEngines(config, systemClock);
  onTestFinished(() => engines.close());
  const real = engines.store();
  const store = replacing(real, steps(real));
  const on: Engines = { ...engines, store: () => store };
  const parts = new StartedParts(silentLog);
  onTestFinished(() => parts.stop());
  const stopping = new AbortController();
  const record = async (accountId: number): Promise<void> => {
    const event = newEvent(opened('One', accountId), { actor: 'test', command: 'test' }, Date.now());
    await real.append([{ stream: `account-${accountId}`, expected: 'none', events: [event] }]);
  };
  const starting = () =>
    startDirectory({
      ...{ engines: on, clock: systemClock, log: silentLog, parts },
      onMoved: () => undefined,
      signal: stopping.signal,
    });
  return { record, starting, stop: () => stopping.abort(new Error('asked to stop')) };
}

const silent = (): Partial<EventStore> => ({
  subscribe: ({ signal }) => ({
    [Symbol.asyncIterator]: () => ({
      next: () =>
        new Promise((resolve) =>
          signal.addEventListener('abort', () => resolve({ done: true, value: undefined })),
        ),
    }),
  }),
});

test('the wait for a directory that does not catch up ends when the process is asked to stop', async () => {
  const { starting, stop } = await start(silent);
  const started = starting();
  stop();
  await expect(started).rejects.toThrow('asked to stop');
});

test('a directory that ends with an error ends the start with it', async () => {
  const { starting } = await start(() => ({
    subscribe: () => {
      throw new TypeError('a fault');
    },
  }));
  await expect(starting()).rejects.toThrow('a fault');
});
