import { world } from './world.ts';

/** Waits for `ms` milliseconds, or until the signal aborts: then it resolves at once. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await world.sleep(ms, undefined, { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** Resolves when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

/** What the work gives, or what `late` gives or throws where that takes longer; it is not ended then. */
export async function orLate<T>(work: Promise<T>, limitMs: number, late: () => T): Promise<T> {
  const { promise: over, resolve } = Promise.withResolvers<void>();
  const timer = world.setTimeout(resolve, limitMs);
  try {
    return await Promise.race([work, over.then(late)]);
  } finally {
    world.clearTimeout(timer);
  }
}
