import { setTimeout as sleep } from 'node:timers/promises';

/** Asks again every 20 ms. Throws when the time is up, or if `holds` throws anything but a refused connection. */
export async function until(holds: () => Promise<boolean>, withinMs: number): Promise<void> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    if (await holds().catch(falseWhenRefused)) return;
    if (Date.now() > deadline) throw new Error(`did not hold within ${withinMs} ms: ${holds}`);
    await sleep(20);
  }
}

function falseWhenRefused(error: unknown): false {
  if ((error as NodeJS.ErrnoException).code === 'ECONNREFUSED') return false;
  throw error;
}

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
