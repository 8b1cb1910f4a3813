import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { EventStoreDbConnection } from '../../../src/engines/eventstoredb/driver/connection.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

/** Makes a connection to a node that does not exist. It connects only when its client is used, which no test does. */
function connection(): EventStoreDbConnection {
  const opened = new EventStoreDbConnection('esdb://127.0.0.1:1?tls=false');
  onTestFinished(() => opened.close());
  return opened;
}

const never = new Promise<never>(() => undefined);

test('an operation leaves neither a timer nor a listener behind, however it ends', async () => {
  const { signal } = new AbortController();
  const opened = connection();
  expect(await opened.use(async () => 7, { signal })).toBe(7);
  await expect(opened.use(() => Promise.reject(new Error('odd')), { signal })).rejects.toThrow('odd');
  const late = opened.use(() => never, { signal, timeoutMs: 100, retryForMs: 0 });
  const failed = expect(late).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  await vi.advanceTimersByTimeAsync(100);
  await failed;
  expect([vi.getTimerCount(), getEventListeners(signal, 'abort')]).toEqual([0, []]);
});

test.each(['its time is over', 'its signal aborts', 'the connection is closed'])(
  'an operation without an answer is cancelled when %s, and is not repeated',
  async (why) => {
    const opened = connection();
    const end = new AbortController();
    const cancelled: boolean[] = [];
    const used = opened.use(
      (_, signal) => {
        cancelled.push(false);
        const at = cancelled.length - 1;
        signal.addEventListener('abort', () => {
          cancelled[at] = true;
        });
        return never;
      },
      { signal: end.signal, timeoutMs: 100, retryForMs: 0 },
    );
    const failed = expect(used).rejects.toMatchObject(
      why === 'its time is over'
        ? { code: 'STORE_UNAVAILABLE' }
        : why === 'its signal aborts'
          ? { name: 'AbortError' }
          : { code: 'STORE_CLOSED' },
    );
    if (why === 'its time is over') await vi.advanceTimersByTimeAsync(100);
    else if (why === 'its signal aborts') end.abort();
    else void opened.close();
    await failed;
    expect(cancelled).toEqual([true]);
  },
);

test('an operation is repeated while no node answers, as long as it is told to, and no other failure is', async () => {
  vi.useRealTimers();
  const opened = connection();
  let tries = 0;
  const unavailable = () => {
    tries++;
    return Promise.reject(Object.assign(new Error('14 UNAVAILABLE'), { code: 14 }));
  };
  const used = opened.use(unavailable, { retryForMs: 250 });
  await expect(used).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  expect(tries).toBeGreaterThan(1);
  expect(tries).toBeLessThan(7);
  tries = 0;
  await expect(
    opened.use(() => {
      tries++;
      return Promise.reject(new Error('odd'));
    }),
  ).rejects.toThrow('odd');
  expect(tries).toBe(1);
  await opened.close();
  await expect(opened.use(async () => 7)).rejects.toMatchObject({ code: 'STORE_CLOSED' });
  await opened.close();
});
