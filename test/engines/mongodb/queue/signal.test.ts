import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { PolledSignal } from '../../../../src/engines/mongodb/queue/signal.ts';

const POLL_MS = 500;

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

/** A signal; `answers` are those of its next polls, and false after them. */
function polled(...answers: readonly (boolean | Error | Promise<boolean>)[]) {
  const left = [...answers];
  const counts = { polls: 0, notified: 0 };
  const isDue = async (): Promise<boolean> => {
    counts.polls++;
    const answer = left.shift() ?? false;
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const signal = new PolledSignal({ isDue, pollMs: POLL_MS });
  const listener = () => ({ notify: () => void counts.notified++ });
  return { signal, counts, listener };
}

test('one poll at a time serves all listeners, and the last of them ends it', async () => {
  const { signal, counts, listener } = polled(true);
  const [one, other] = [listener(), listener()];
  signal.add(one);
  signal.add(other);
  expect(vi.getTimerCount()).toBe(1);
  await pass(POLL_MS);
  expect(counts).toEqual({ polls: 1, notified: 2 });
  signal.remove(one);
  await pass(POLL_MS);
  expect(counts.polls).toBe(2);
  signal.remove(other);
  expect(vi.getTimerCount()).toBe(0);
  signal.add(one);
  await pass(POLL_MS);
  expect(counts).toEqual({ polls: 3, notified: 2 });
});

test('a poll that fails, or finds nothing, is followed by the next', async () => {
  const { signal, counts, listener } = polled(new Error('gone'), false, true);
  signal.add(listener());
  await pass(3 * POLL_MS);
  expect(counts).toEqual({ polls: 3, notified: 1 });
});

test('a poll whose listeners have left while it was under way is not followed by another', async () => {
  const answer = Promise.withResolvers<boolean>();
  const { signal, counts, listener } = polled(answer.promise);
  const [one, other] = [listener(), listener()];
  signal.add(one);
  await pass(POLL_MS);
  signal.remove(one);
  answer.resolve(true);
  await pass(0);
  expect([vi.getTimerCount(), counts.notified]).toEqual([0, 0]);
  const again = polled(answer.promise);
  again.signal.add(one);
  await pass(POLL_MS);
  again.signal.remove(one);
  again.signal.add(other); // which has a timer of its own
  await pass(0);
  expect(vi.getTimerCount()).toBe(1);
});

test('closing ends the polls and notifies once more', async () => {
  const { signal, counts, listener } = polled();
  signal.add(listener());
  signal.close();
  expect([vi.getTimerCount(), counts.notified]).toEqual([0, 1]);
  signal.notify();
  expect(counts.notified).toBe(1);
  expect(() => signal.add(listener())).toThrow(/closed/);
});

test('polling keeps no process alive', () => {
  vi.useRealTimers();
  const before = process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const { signal, listener } = polled();
  signal.add(listener());
  expect(process.getActiveResourcesInfo().filter((name) => name === 'Timeout')).toHaveLength(before);
  signal.close();
});
