import type { Clock } from '../../base/clock.ts';

/** The deliveries that a killed process had claimed are due again after this time. */
export const LEASE_MS = 5_000;

/** The time of a claim, which is taken before the claim is made: nobody knows when a slow store has made it. */
export class Lease {
  readonly #clocks: readonly Clock[];
  readonly #sinceMs: readonly number[];

  /** `clock` is the one by which other processes judge the lease. `steady` never jumps. */
  constructor(clock: Clock, steady: Clock) {
    this.#clocks = [clock, steady];
    this.#sinceMs = this.#clocks.map((each) => each.now());
  }

  /**
   * True while at least half of it is left, by both clocks. An attempt that begins then is over before another process
   * may take the delivery, even if the clocks of the two differ by two seconds.
   */
  get isFresh(): boolean {
    return this.#clocks.every((clock, n) => clock.now() - (this.#sinceMs[n] ?? 0) < LEASE_MS / 2);
  }
}
