/** While someone measures, the clock looks this often whether the event loop turns. */
const BEAT_MS = 20;
/** Counted of the time between two looks at most: a turn that takes longer has kept answers waiting. */
const MAX_COUNTED_MS = 40;

/**
 * A clock that stands still while the event loop of this thread is late: behind long work of its own, garbage
 * collection, or a machine that has no time for this process. It measures what others take, who must not be blamed for
 * that. It runs between `start` and `stop` only.
 */
class LoopClock {
  #users = 0;
  #countedMs = 0;
  #lookedAtMs = 0;
  #beat: NodeJS.Timeout | undefined;

  /** Milliseconds that the loop was on time since the clock first started. */
  now(): number {
    return this.#users === 0 ? this.#countedMs : this.#countedMs + this.#sinceLookMs();
  }

  /** Each start needs its `stop`. */
  start(): void {
    if (this.#users++ > 0) return;
    this.#lookedAtMs = performance.now();
    this.#beat = setInterval(() => this.#look(), BEAT_MS);
    this.#beat.unref(); // whoever measures waits for something else
  }

  stop(): void {
    if (this.#users === 1) {
      this.#look();
      clearInterval(this.#beat);
    }
    this.#users--;
  }

  /** Once a turn: a second look in the same long turn would count it all. */
  #look(): void {
    this.#countedMs += this.#sinceLookMs();
    this.#lookedAtMs = performance.now();
  }

  #sinceLookMs(): number {
    return Math.min(performance.now() - this.#lookedAtMs, MAX_COUNTED_MS);
  }
}

/** Of this thread. */
const loopClock = new LoopClock();

export interface Stopwatch {
  /** Since it was started: all of the time, and the part of it that the event loop was late. Milliseconds. */
  read(): { readonly elapsedMs: number; readonly lateMs: number };
  /** To be called once, when it is read no more. */
  stop(): void;
}

export function startStopwatch(): Stopwatch {
  loopClock.start();
  const startedAtMs = performance.now();
  const countedBeforeMs = loopClock.now();
  return {
    read() {
      const elapsedMs = performance.now() - startedAtMs;
      const lateMs = Math.max(0, elapsedMs - (loopClock.now() - countedBeforeMs));
      return { elapsedMs, lateMs };
    },
    stop: () => loopClock.stop(),
  };
}
