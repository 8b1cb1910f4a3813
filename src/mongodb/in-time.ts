import { FuelError } from '../errors.ts';

/**
 * Limits how long an answer is waited for: rejects with `STORE_UNAVAILABLE` after `withinMs`. The driver has no
 * limit of its own for a server that took an operation and says nothing. What was asked may still happen then.
 */
export async function inTime<T>(withinMs: number, work: () => Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    late.reject(new FuelError('STORE_UNAVAILABLE', `MongoDB has not answered within ${withinMs} ms`));
  }, withinMs);
  try {
    return await Promise.race([work(), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
