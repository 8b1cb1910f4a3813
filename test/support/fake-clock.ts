import type { Clock } from '../../src/base/clock.ts';

/** A clock that stands still until it is told to move. */
export class FakeClock implements Clock {
  #nowMs = Date.UTC(2026, 8, 3, 8);

  now(): number {
    return this.#nowMs;
  }

  advance(ms: number): void {
    this.#nowMs += ms;
  }
}
