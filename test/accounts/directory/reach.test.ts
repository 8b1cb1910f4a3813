import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { DirectoryReach } from '../../../src/accounts/directory/live-directory.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Returns for each of these if it is settled now. */
async function settled(...waits: readonly Promise<void>[]): Promise<boolean[]> {
  const done = waits.map(() => false);
  for (const [index, wait] of waits.entries()) void wait.then(() => (done[index] = true));
  await vi.advanceTimersByTimeAsync(0);
  return done;
}

test('a wait ends when the directory has reached its position, and leaves no timer', async () => {
  const reach = new DirectoryReach();
  const [ten, eleven] = [reach.reach(10), reach.reach(11)];
  expect(await settled(ten, eleven)).toEqual([false, false]);
  reach.moved(10);
  expect(await settled(ten, eleven)).toEqual([true, false]);
  reach.moved(20);
  expect(await settled(eleven)).toEqual([true]);
  expect(vi.getTimerCount()).toBe(0);
});

test('where the directory is there already nothing is waited for', async () => {
  const reach = new DirectoryReach();
  reach.moved(10);
  expect(await settled(reach.reach(10))).toEqual([true]);
});

test('a directory that does not move is waited for a tenth of a second', async () => {
  const wait = new DirectoryReach().reach(1);
  await vi.advanceTimersByTimeAsync(99);
  expect(await settled(wait)).toEqual([false]);
  await vi.advanceTimersByTimeAsync(1);
  expect(await settled(wait)).toEqual([true]);
});
