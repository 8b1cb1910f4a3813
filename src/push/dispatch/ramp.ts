const FIRST_PER_SECOND = 10;
const OVER_AFTER_MS = 10_000; // 10,240 a second by then: it no longer matters
const BURST_MS = 100; // unused capacity is kept this long

interface Ramp {
  readonly sinceMs: number;
  /** When the next delivery may start. */
  nextAtMs: number;
}

/**
 * Slow starts of webhooks that were just enabled: 10 deliveries a second at first, twice as many each second,
 * so that a receiver that is just available again is not flooded. Times come from the caller.
 */
export class Ramps {
  readonly #ramps = new Map<string, Ramp>();

  /** `atMs` is when the webhook was enabled. */
  start(prefix: string, atMs: number): void {
    this.#ramps.set(prefix, { sinceMs: atMs, nextAtMs: atMs });
  }

  /** How many deliveries may start now; infinite for a webhook without a ramp. */
  capacity(prefix: string, nowMs: number): number {
    const ramp = this.#current(prefix, nowMs);
    if (ramp === undefined) return Infinity;
    const fromMs = Math.max(ramp.nextAtMs, nowMs - BURST_MS);
    return fromMs > nowMs ? 0 : 1 + Math.floor((nowMs - fromMs) / intervalMs(ramp, nowMs));
  }

  /** One delivery starts now. */
  consume(prefix: string, nowMs: number): void {
    const ramp = this.#current(prefix, nowMs);
    if (ramp === undefined) return;
    ramp.nextAtMs = Math.max(ramp.nextAtMs, nowMs - BURST_MS) + intervalMs(ramp, nowMs);
  }

  /** When the first webhook that has to wait now may continue; `undefined` where none has to. */
  nextAtMs(nowMs: number): number | undefined {
    let next: number | undefined;
    for (const prefix of [...this.#ramps.keys()]) {
      const ramp = this.#current(prefix, nowMs);
      if (ramp === undefined || ramp.nextAtMs <= nowMs) continue;
      next = Math.min(next ?? Infinity, Math.ceil(ramp.nextAtMs));
    }
    return next;
  }

  #current(prefix: string, nowMs: number): Ramp | undefined {
    const ramp = this.#ramps.get(prefix);
    if (ramp === undefined || nowMs - ramp.sinceMs < OVER_AFTER_MS) return ramp;
    this.#ramps.delete(prefix);
    return undefined;
  }
}

function intervalMs({ sinceMs }: Ramp, nowMs: number): number {
  const second = Math.max(0, Math.floor((nowMs - sinceMs) / 1000));
  return 1000 / (FIRST_PER_SECOND * 2 ** second);
}
