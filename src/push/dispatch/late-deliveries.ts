import { type Clock, sinceBoot } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { pause } from '../../base/pause.ts';
import { retryWhileUnavailable } from '../../base/retry.ts';
import type { DeliveryQueue } from '../queue/delivery-queue.ts';

const LOOK_EVERY_MS = 2_000;
/** Of each kind in one look. */
const LIMIT = 500;

export interface LateDeliveriesOptions {
  readonly queue: Pick<DeliveryQueue, 'late' | 'report'>;
  readonly clock: Clock;
  /** How long a claim lasts. */
  readonly leaseMs: number;
  /** No attempt is put off for longer than this. */
  readonly longestWaitMs: number;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Milliseconds that run on evenly when the clock is set. */
  readonly elapsed?: Clock;
}

/** Looks for deliveries that a clock that was ahead has put off, until the signal aborts. Rejects as the queue does. */
export async function watchLateDeliveries(options: LateDeliveriesOptions): Promise<void> {
  const { log, signal } = options;
  const late = new LateDeliveries(options);
  while (!signal.aborted) {
    await retryWhileUnavailable(() => late.release(), { log, signal, component: 'late deliveries' });
    await pause(LOOK_EVERY_MS, signal);
  }
}

/**
 * Due times and the ends of claims are written by the clock of whoever writes them. Where that was ahead of the present
 * time, they are later than they could be.
 */
export class LateDeliveries {
  readonly #options: LateDeliveriesOptions;
  /** By token, since when a claim that ends too late is known. */
  #claims = new Map<string, number>();
  /** The most that the clock was ahead of the elapsed time. */
  #mostAheadMs = Number.NEGATIVE_INFINITY;

  constructor(options: LateDeliveriesOptions) {
    this.#options = options;
  }

  /** Makes due what is late, and gives up claims that lasted for their time though their end is far away. */
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
      // The process that has the claim may be alive: another clock is no reason to attempt a delivery twice.
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
