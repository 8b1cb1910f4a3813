import type { Log } from '../log.ts';
import { pause } from '../pause.ts';
import type { Coordination } from './coordination.ts';

const RENEW_EVERY_MS = 1_000;

export interface LeaseTerms {
  readonly coordination: Pick<Coordination, 'acquire' | 'release'>;
  readonly lease: string;
  /** Names the process among those that compete for the lease. */
  readonly holder: string;
  /** Some seconds: it is renewed every second. */
  readonly ttlMs: number;
}

interface LeasedWork {
  /** Which part works, as the log names it: `projector`. */
  readonly component: string;
  readonly log: Log;
  /** Ends the work. */
  readonly signal: AbortSignal;
}

/**
 * Acquires the lease, does the work while it is renewed, and releases it. `undefined`, with nothing done, where another
 * has it. `until` aborts when the work has to end: at the latest when another has taken the lease. A renewal or a release
 * that fails is logged; it never ends the work, nor hides how that ended.
 */
export async function whileHolding<T>(
  terms: LeaseTerms,
  { component, log, signal }: LeasedWork,
  work: (until: AbortSignal) => Promise<T>,
): Promise<{ readonly result: T } | undefined> {
  const { coordination, lease, holder, ttlMs } = terms;
  const acquire = () => coordination.acquire(lease, holder, ttlMs);
  if (!(await acquire())) return undefined;
  const ended = new AbortController();
  const until = AbortSignal.any([signal, ended.signal]);
  const renewing = renew();
  try {
    return { result: await work(until) };
  } finally {
    ended.abort();
    await renewing;
    try {
      await coordination.release(lease, holder);
    } catch (error) {
      log.warn({ err: error }, `${component} could not release its lease: it expires within seconds`);
    }
  }

  async function renew(): Promise<void> {
    for (;;) {
      await pause(RENEW_EVERY_MS, until);
      if (until.aborted) return;
      try {
        if (await acquire()) continue;
        log.warn(`${component} lost its lease: another process has it`);
        ended.abort();
      } catch (error) {
        log.warn({ err: error }, `${component} could not renew its lease: retrying`);
      }
    }
  }
}
