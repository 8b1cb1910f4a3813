import { expect, test, vi } from 'vitest';
import { gently } from '../../src/base/pause.ts';
import { world } from '../../src/base/world.ts';

test('gentle work rests as long as its steps took; short steps are added up, and a rest is never long', async () => {
  let nowMs = 0;
  vi.spyOn(world, 'steadyMs').mockImplementation(() => nowMs);
  const sleep = vi.spyOn(world, 'sleep').mockResolvedValue(undefined);
  const rest = gently(new AbortController().signal);
  for (const tookMs of [2, 2, 2, 8, 500]) {
    nowMs += tookMs;
    await rest();
  }
  expect(sleep.mock.calls.map(([ms]) => ms)).toEqual([6, 8, 20]);
  vi.restoreAllMocks();
});

test('gentle work that is asked to stop rests no longer', async () => {
  const rest = gently(AbortSignal.abort());
  for (const endMs = performance.now() + 10; performance.now() < endMs; );
  await rest();
});
