import { setImmediate as nextTurn } from 'node:timers/promises';
import type { AlarmClock } from '../../../src/base/clock.ts';

interface Timer {
  atMs: number;
  readonly run: () => void;
}

const TURNS = 12; // more than any chain of store calls and claims takes to settle

/** Time and timers that only the test moves. */
export class FakeAlarmClock implements AlarmClock {
  #nowMs = Date.UTC(2026, 8, 3, 8);
  #timers: Timer[] = [];
  #steppedMs = 0;
  readonly steady = { now: () => this.#nowMs - this.#steppedMs };

  now(): number {
    return this.#nowMs;
  }

  get pending(): readonly number[] {
    return this.#timers.map(({ atMs }) => atMs - this.#nowMs);
  }

  setTimer(delayMs: number, run: () => void): () => void {
    const timer = { atMs: this.#nowMs + Math.max(0, delayMs), run };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** Moves time forward from timer to timer, and lets the work of each timer finish. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    await settle();
    for (;;) {
      const [next] = this.#timers.toSorted((one, other) => one.atMs - other.atMs);
      if (next === undefined || next.atMs > untilMs) break;
      this.#timers = this.#timers.filter((timer) => timer !== next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.run();
      await settle();
    }
    this.#nowMs = untilMs;
    await settle();
  }

  /** Moves time forward in one step, as for a process that was suspended: every timer in between fires once, late. */
  async jump(ms: number): Promise<void> {
    this.#nowMs += ms;
    await this.advance(0);
  }

  /** Sets the clock forward or back. Timers keep the time that they have left. */
  step(ms: number): void {
    this.#nowMs += ms;
    this.#steppedMs += ms;
    for (const timer of this.#timers) timer.atMs += ms;
  }

  /** Drops all timers, as a crash does. */
  dropTimers(): void {
    this.#timers = [];
  }
}

/** Lets everything happen that waits only for the event loop. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) await nextTurn();
}
