import { FuelError, reasonOf } from '../../../base/errors.ts';
import { orLate } from '../../../base/pause.ts';

/** A value with the time at which it was read, or why it is not known. */
export type Known<T> =
  | { readonly value: T; readonly atMs: number }
  | { readonly unknown: string; readonly value?: undefined };

const MAX_WAIT_MS = 3_000;
const LATE = { unknown: 'the store does not answer' };
/** After a read this many times its length passes before the next one, so that reads take 2 % of the time. */
const REST_FACTOR = 50;

/** Returns what `read` returns in time, or why it does not. Rejects with faults of the program. */
export async function known<T>(
  read: () => Promise<T>,
  now: () => number,
  maxWaitMs = MAX_WAIT_MS,
): Promise<Known<T>> {
  try {
    const atMs = now();
    const reading = read().then((value): Known<T> => ({ value, atMs }));
    return await orLate(reading, maxWaitMs, () => LATE);
  } catch (error) {
    if (error instanceof Error && ['AbortError', 'TimeoutError'].includes(error.name)) return LATE;
    if (error instanceof FuelError) return { unknown: reasonOf(error) };
    throw error;
  }
}

/**
 * Shares one read among all who ask during it and for `ageMs` afterwards; after a long read for longer, but at most for
 * `maxAgeMs`. A failure is not kept.
 */
export function shared<T>(
  read: () => Promise<T>,
  { ageMs, maxAgeMs }: { readonly ageMs: number; readonly maxAgeMs: number },
): () => Promise<T> {
  let held: Promise<T> | undefined;
  const forget = (): void => {
    held = undefined;
  };
  return () => {
    if (held !== undefined) return held;
    const startedAtMs = performance.now();
    held = read();
    held.then(() => {
      const restMs = REST_FACTOR * (performance.now() - startedAtMs);
      setTimeout(forget, Math.max(ageMs, Math.min(restMs, maxAgeMs))).unref();
    }, forget);
    return held;
  };
}
