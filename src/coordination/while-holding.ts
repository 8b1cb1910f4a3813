import { pause } from '../pause.ts';
import type { Coordination } from './coordination.ts';

const RENEW_EVERY_MS = 1_000;

export interface HeldLease {
  readonly coordination: Pick<Coordination, 'acquire'>;
  readonly lease: string;
  readonly holder: string;
  /** Some seconds: it is renewed every second. */
  readonly ttlMs: number;
  /** Ends the work. */
  readonly signal: AbortSignal;
  /** After each renewal that failed, with its error, or that was refused because another holds the lease. */
  readonly onMissed: (error: unknown, endWork: () => void) => void;
}

/** Does the work while the lease, which `holder` has, is renewed. `until` aborts when the work has to end. */
export async function whileHolding<T>(held: HeldLease, work: (until: AbortSignal) => Promise<T>): Promise<T> {
  const ended = new AbortController();
  const until = AbortSignal.any([held.signal, ended.signal]);
  const renewing = renew(held, until, () => ended.abort());
  try {
    return await work(until);
  } finally {
    ended.abort();
    await renewing;
  }
}

async function renew(
  { coordination, lease, holder, ttlMs, onMissed }: HeldLease,
  until: AbortSignal,
  endWork: () => void,
): Promise<void> {
  while (!until.aborted) {
    await pause(RENEW_EVERY_MS, until);
    if (until.aborted) return;
    try {
      if (!(await coordination.acquire(lease, holder, ttlMs))) onMissed(undefined, endWork);
    } catch (error) {
      onMissed(error, endWork);
    }
  }
}
