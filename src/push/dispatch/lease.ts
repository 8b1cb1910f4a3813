import type { Clock } from '../../base/clock.ts';

/** The deliveries that a killed process had claimed are due again after this time. */
export const LEASE_MS = 5_000;

/** A lease. It begins before the commit that makes it: nobody knows when a slow store has made that. */
export class Lease {
  readonly terms: { readonly nowMs: number; readonly leaseMs: number };
  readonly #clocks: readonly Clock[];
  readonly #sinceMs: readonly number[];

  /** `clock` is the one by which other processes judge the lease. `steady` never jumps. */
  constructor(clock: Clock, steady: Clock) {
    this.#clocks = [clock, steady];
    this.#sinceMs = this.#clocks.map((each) => each.now());
    this.terms = { nowMs: this.#sinceMs[0] ?? 0, leaseMs: LEASE_MS };
  }

  /**
   * True while at least half of it is left, by both clocks. An attempt that begins then is over before another process
   * may take the delivery, even if the clocks of the two differ by two seconds.
   */
  get isFresh(): boolean {
    return this.#clocks.every((clock, n) => clock.now() - (this.#sinceMs[n] ?? 0) < LEASE_MS / 2);
  }
}
