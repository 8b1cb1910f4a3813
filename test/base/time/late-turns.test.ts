import { expect, onTestFinished, test, vi } from 'vitest';
import { lateTurns as lateTurnsOfThread } from '../../../src/base/time/within-time.ts';

const lateTurns = lateTurnsOfThread();

test('the event loop is looked at only while something is timed', () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const [first, second] = [lateTurns.start(() => 0), lateTurns.start(() => 0)];
  expect(vi.getTimerCount()).toBe(1);
  lateTurns.stop(first);
  expect(vi.getTimerCount()).toBe(1);
  lateTurns.stop(second);
  expect(vi.getTimerCount()).toBe(0);
  lateTurns.stop(lateTurns.start(() => 0));
  expect(vi.getTimerCount()).toBe(0);
});
