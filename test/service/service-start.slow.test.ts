import { expect, onTestFinished, test } from 'vitest';
import { loadConfig } from '../../src/engines/engines.ts';
import { startProcess } from '../../src/operator/serve/start-process.ts';
import { startEventStoreDbDouble } from '../support/event-store/eventstoredb-double/eventstoredb-double.ts';
import { memoryLog } from '../support/service/api.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** Starts a service without threads. Its event store is a double that stops at the first step after it was reached. */
async function starting() {
  const folder = temporaryFolder();
  const double = await startEventStoreDbDouble({ folder });
  const { port, url } = double;
  const stopped = Promise.withResolvers<void>();
  let hasBegun = false;
  const clock = {
    now: () => {
      if (!hasBegun) double.stop().then(stopped.resolve, stopped.reject);
      hasBegun = true;
      return Date.now();
    },
  };
  const lines: Record<string, unknown>[] = [];
  const signals = new AbortController();
  const config = loadConfig(
    {
      EVENTSTORE_URL: url,
      FUEL_DATA_DIR: temporaryFolder(),
      FUEL_LISTEN: '127.0.0.1:0',
      FUEL_OPS_LISTEN: '127.0.0.1:0',
    },
    'serve',
  );
  const service = startProcess({
    config,
    roles: ['notices'],
    log: memoryLog(lines),
    clock,
    signal: signals.signal,
  });
  service.catch(() => undefined); // the test awaits it
  const restart = async (): Promise<void> => {
    const again = await startEventStoreDbDouble({ folder, port });
    onTestFinished(() => again.stop());
  };
  return { service, stopped: stopped.promise, restart, lines, stop: () => signals.abort() };
}

const says = (lines: readonly Record<string, unknown>[], text: string): boolean =>
  lines.some(({ msg }) => String(msg).includes(text));

test('a start waits, and continues, when an engine becomes unavailable after it was reached', async () => {
  const { service, stopped, restart, lines } = await starting();
  await stopped;
  await expect.poll(() => says(lines, 'start waits: a store is unavailable')).toBe(true);
  await restart();
  const started = await service;
  expect(says(lines, 'listening')).toBe(true);
  await started.stop();
});

test('a start that waits can be stopped, and leaves nothing running', async () => {
  const { service, stopped, lines, stop } = await starting();
  await stopped;
  await expect.poll(() => says(lines, 'start waits: a store is unavailable')).toBe(true);
  stop();
  await expect(service).rejects.toMatchObject({ name: 'AbortError' });
  expect(says(lines, 'listening')).toBe(false);
});
