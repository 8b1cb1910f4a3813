import { onTestFinished, vi } from 'vitest';
import { world } from '../../src/base/world.ts';

/** Stops the steady time until the test ends. Returns a function that moves it ahead. */
export function stoppedTime(): (ms: number) => void {
  let nowMs = world.steadyMs();
  const steady = vi.spyOn(world, 'steadyMs').mockImplementation(() => nowMs);
  onTestFinished(() => steady.mockRestore());
  return (ms) => {
    nowMs += ms;
  };
}
