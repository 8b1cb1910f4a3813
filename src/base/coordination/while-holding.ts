import { steadyClock } from '../clock.ts';
import type { Log } from '../log.ts';
import { pause } from '../pause.ts';
import { world } from '../world.ts';
import type { Coordination } from './coordination.ts';

/** A lease is renewed four times while it lasts, but at most once a second, since a renewal takes some round trips. */
const renewEveryMs = (ttlMs: number): number => Math.max(1_000, ttlMs / 4);
/** Work whose lease is not renewed is told to end this long before the lease can have ended. */
const ENDING_MS = 500;

export interface LeaseTerms {
  readonly coordination: Pick<Coordination, 'acquire' | 'release'>;
  readonly lease: string;
  /** Identifies the process among those that compete for the lease. */
  readonly holder: string;
  /** The lease's duration, usually some seconds: another process takes over that much later after a kill. */
  readonly ttlMs: number;
}

interface LeasedWork {
  /** The name of the part in log lines, such as `projector`. */
  readonly component: string;
  readonly log: Log;
  /** Ends the work. */
  readonly signal: AbortSignal;
}

/**
 * Acquires the lease, does the work while renewing it, and releases it. Returns `undefined`, with nothing done, if
 * another process has the lease. `until` aborts when the work has to end: at the latest when another process has taken
 * the lease, or just before the lease can have ended because no renewal has succeeded. A failed renewal is logged and
 * retried until then. A failed release is logged, and does not hide the result of the work.
 */
export async function whileHolding<T>(
  terms: LeaseTerms,
  { component, log, signal }: LeasedWork,
  work: (until: AbortSignal) => Promise<T>,
): Promise<{ readonly result: T } | undefined> {
  const { coordination, lease, holder, ttlMs } = terms;
  const ended = new AbortController();
  const until = AbortSignal.any([signal, ended.signal]);
  let heldUntilMs = 0;
  /** Set while a renewal is under way or has failed. */
  let expiry: NodeJS.Timeout | undefined;
  if (!(await acquire())) return undefined;
  const renewing = renew();
  try {
    return { result: await work(until) };
  } finally {
    ended.abort();
    await renewing;
    world.clearTimeout(expiry);
    try {
      await coordination.release(lease, holder);
    } catch (error) {
      log.warn({ err: error }, `${component} could not release its lease: it expires within seconds`);
    }
  }

  /** Takes the lease for a time that counts from before the call, since nobody knows when the store granted it. */
  async function acquire(): Promise<boolean> {
    const askedAtMs = steadyClock.now();
    const isTaken = await coordination.acquire(lease, holder, ttlMs);
    world.clearTimeout(expiry);
    if (isTaken) heldUntilMs = askedAtMs + ttlMs;
    return isTaken;
  }

  async function renew(): Promise<void> {
    for (;;) {
      await pause(renewEveryMs(ttlMs), until);
      if (until.aborted) return;
      world.clearTimeout(expiry);
      // A thread that was blocked may be too late already.
      expiry = world.setTimeout(expire, Math.max(0, heldUntilMs - ENDING_MS - steadyClock.now()));
      try {
        if (await acquire()) continue;
        log.warn(`${component} lost its lease: another process has it`);
        ended.abort();
      } catch (error) {
        log.warn({ err: error }, `${component} could not renew its lease: retrying`);
      }
    }
  }

  function expire(): void {
    log.warn(`${component} stops: it could not renew its lease in time`);
    ended.abort();
  }
}
