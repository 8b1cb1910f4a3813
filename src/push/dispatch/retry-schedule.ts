import { hash } from 'node:crypto';

const JITTER = 0.1;
const RANDOM_HEX_DIGITS = 12; // 48 bits, which a number holds exactly

export interface RetryTerms {
  /** The waits before attempts 2, 3, …: as many as there are retries. */
  readonly delaysMs: readonly number[];
  /** The attempt to come: 2 or more. */
  readonly attemptNumber: number;
  /** In [0, 1). */
  readonly random: number;
}

/**
 * How long to wait between the attempt before and this one: the configured delay, spread by ±10 % so that a
 * receiver that is available again does not get everything at once. `undefined` when there is no such attempt.
 */
export function retryDelayMs({ delaysMs, attemptNumber, random }: RetryTerms): number | undefined {
  const delayMs = delaysMs[attemptNumber - 2];
  if (delayMs === undefined) return undefined;
  return Math.round(delayMs * (1 - JITTER + 2 * JITTER * random));
}

/** The spread of one attempt, in [0, 1): as good as random, but always the same for this attempt. */
export function attemptRandom(options: { id: string; cycle: number; attemptNumber: number }): number {
  const digest = hash('sha256', `${options.id}/${options.cycle}/${options.attemptNumber}`, 'hex');
  return Number.parseInt(digest.slice(0, RANDOM_HEX_DIGITS), 16) / 16 ** RANDOM_HEX_DIGITS;
}
