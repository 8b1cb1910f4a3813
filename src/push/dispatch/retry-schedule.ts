import { hash } from 'node:crypto';
import { MAX_RETRY_AFTER_MS } from '../pace/retry-after.ts';
import type { ClaimedDelivery } from '../queue/delivery.ts';

const JITTER = 0.1;
const MAX_CLOCK_DIFFERENCE_MS = 30_000;
const RANDOM_HEX_DIGITS = 12; // 48 bits, which a number holds exactly

/** The longest time that an attempt may have to wait, by the clock of any process. */
export function longestWaitMs(delaysMs: readonly number[]): number {
  const longestMs = delaysMs.reduce((a, b) => Math.max(a, b), MAX_RETRY_AFTER_MS);
  return Math.ceil(longestMs * (1 + JITTER)) + MAX_CLOCK_DIFFERENCE_MS;
}

/**
 * How long to wait after a delivery's failed attempt, given the waits before attempts 2, 3, …; `undefined` if it was the
 * last. The wait varies by ±10 %, so that a receiver that is available again does not get everything at once. The
 * variation is pseudo-random, and always the same for the same attempt.
 */
export function retryDelayMs(
  delaysMs: readonly number[],
  { id, cycle, attemptNumber }: Pick<ClaimedDelivery, 'id' | 'cycle' | 'attemptNumber'>,
): number | undefined {
  const delayMs = delaysMs[attemptNumber - 1];
  if (delayMs === undefined) return undefined;
  const digest = hash('sha256', `${id}/${cycle}/${attemptNumber + 1}`, 'hex');
  const random = Number.parseInt(digest.slice(0, RANDOM_HEX_DIGITS), 16) / 16 ** RANDOM_HEX_DIGITS;
  return Math.round(delayMs * (1 - JITTER + 2 * JITTER * random));
}
