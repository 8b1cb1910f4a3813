import { setTimeout as sleep } from 'node:timers/promises';

/** Longer than anything takes on a busy machine. A test that passes waits no longer than it has to. */
export const PATIENCE_MS = 60_000;
/** Longer than any test: a poll, lease or time-out that would hide a lost notification if it ended sooner. */
export const TOO_LATE_MS = 60 * PATIENCE_MS;

/**
 * Asks again every 20 ms until the answer is yes. Throws when the time is up, or if `holds` throws anything but a
 * refused connection.
 */
export async function until(holds: () => boolean | Promise<boolean>, withinMs = PATIENCE_MS): Promise<void> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    if (await ask(holds)) return;
    if (Date.now() > deadline) throw new Error(`did not hold within ${withinMs} ms: ${holds}`);
    await sleep(20);
  }
}

async function ask(holds: () => boolean | Promise<boolean>): Promise<boolean> {
  try {
    return await holds();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ECONNREFUSED') return false;
    throw error;
  }
}

/** Waits for the promise. Throws the message when the time is up. */
export async function within<T>(
  promise: Promise<T>,
  ms: number,
  message: string | (() => string),
): Promise<T> {
  const late = new AbortController();
  try {
    return await Promise.race([
      promise,
      sleep(ms, undefined, { signal: late.signal }).then(() => {
        throw new Error(typeof message === 'string' ? message : message());
      }),
    ]);
  } finally {
    late.abort();
  }
}
