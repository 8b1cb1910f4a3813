import { type Clock, sinceBoot } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { pause } from '../../base/pause.ts';
import { retryWhileUnavailable } from '../../base/retry.ts';
import type { DeliveryQueue } from '../queue/delivery-queue.ts';

const LOOK_EVERY_MS = 2_000;
/** The most deliveries of each kind in one look. */
const LIMIT = 500;

interface LateDeliveriesOptions {
  readonly queue: Pick<DeliveryQueue, 'late' | 'report'>;
  readonly clock: Clock;
  /** How long a claim lasts. */
  readonly leaseMs: number;
  /** The longest time that an attempt may have to wait. */
  readonly longestWaitMs: number;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** A clock that is not affected when the time is set. */
  readonly elapsed?: Clock;
}

/** Looks for deliveries that a fast clock has put off, until the signal aborts. Rejects as the queue does. */
export async function watchLateDeliveries(options: LateDeliveriesOptions): Promise<void> {
  const { log, signal } = options;
  const late = new LateDeliveries(options);
  while (!signal.aborted) {
    await retryWhileUnavailable(() => late.release(), { log, signal, component: 'late deliveries' });
    await pause(LOOK_EVERY_MS, signal);
  }
}

/**
 * Finds deliveries whose due time or lease is later than it could be: they were written by a process whose clock was
 * ahead of the present time.
 */
export class LateDeliveries {
  readonly #options: LateDeliveriesOptions;
  /** When each claim that ends too late was first seen, by its token. */
  #claims = new Map<string, number>();
  /** The largest difference between the clock and the elapsed time. */
  #mostAheadMs = Number.NEGATIVE_INFINITY;

  constructor(options: LateDeliveriesOptions) {
    this.#options = options;
  }

  /** Makes late deliveries due, and ends claims that have lasted as long as a lease although they end much later. */
  async release(): Promise<void> {
    const { queue, clock, leaseMs, longestWaitMs, log, elapsed = sinceBoot } = this.#options;
    const nowMs = clock.now();
    const elapsedMs = elapsed.now();
    this.#mostAheadMs = Math.max(this.#mostAheadMs, nowMs - elapsedMs);
    const setBackMs = this.#mostAheadMs - (nowMs - elapsedMs);
    const late = await queue.late({ claimsMs: nowMs + leaseMs, othersMs: nowMs + longestWaitMs }, LIMIT);
    const before = this.#claims;
    this.#claims = new Map();
    const released = late.filter(({ leaseToken }) => {
      if (leaseToken === null) return true;
      // The process that has the claim may be alive, and a wrong clock is no reason to attempt a delivery twice.
      const sinceMs = before.get(leaseToken) ?? elapsedMs;
      this.#claims.set(leaseToken, sinceMs);
      return elapsedMs - sinceMs >= leaseMs;
    });
    if (released.length === 0) return;
    const dueAt = ({ dueAtMs, leaseToken }: (typeof late)[number]): number => {
      const rightMs = dueAtMs - setBackMs;
      return leaseToken === null && rightMs <= nowMs + longestWaitMs ? Math.max(nowMs, rightMs) : nowMs;
    };
    await queue.report(released.map((each) => ({ kind: 'released', ...each, dueAtMs: dueAt(each) })));
    log.warn({ deliveries: released.length }, 'deliveries that a wrong clock had put off are due again');
  }
}
