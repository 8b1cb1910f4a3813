import { steadyClock } from '../clock.ts';
import { world } from '../world.ts';

/** The maximum extension, as a multiple of the limit. Beyond it the work ends, before another process takes it over. */
const MAX_STRETCH = 7;

export interface TimedWork<T> {
  readonly limitMs: number;
  /** The signal aborts when nobody waits for the result any more. */
  readonly work: (signal: AbortSignal) => Promise<T>;
  /** Returns the result if the time is over first. */
  readonly expired: (lateMs: number) => T;
  /** A number that changes with each step of the other side. Without it, steps are unknown and all the time counts. */
  readonly progress?: () => number;
}

export interface TimedResult<T> {
  readonly result: T;
  /** The time for which steps of the other side waited for this process. */
  readonly lateMs: number;
}

/**
 * Runs `work` for at most `limitMs` of the other side's time. Time in which a step of it waited for this process does
 * not count, up to seven times the limit in all. When the timer fires, the event loop turns once more first, so that
 * what arrived while this process was busy is in time. Rejects as `work` does.
 */
export function withinTime<T>(timed: TimedWork<T>): Promise<TimedResult<T>> {
  const { limitMs, work, expired, progress = () => 0 } = timed;
  const controller = new AbortController();
  const watch = lateTurns().start(progress);
  return new Promise((resolve, reject) => {
    let timer = world.setTimeout(() => void fired(), limitMs);
    let ended = false;

    /** A timer counts from the start of the event loop's turn in which it was set, so it may fire early. */
    async function fired(): Promise<void> {
      if (wait()) return;
      await lateTurns().settled();
      if (ended || wait()) return;
      end(() => resolve({ result: expired(watch.lateMs), lateMs: watch.lateMs }));
      controller.abort();
    }

    function wait(): boolean {
      const { startedAtMs, lateMs } = watch;
      const leftMs = startedAtMs + Math.min(limitMs + lateMs, limitMs * MAX_STRETCH) - steadyClock.now();
      if (leftMs > 0) timer = world.setTimeout(() => void fired(), Math.ceil(leftMs));
      return leftMs > 0;
    }

    function end(settle: () => void): void {
      if (ended) return;
      ended = true;
      world.clearTimeout(timer);
      lateTurns().stop(watch);
      settle();
    }

    work(controller.signal).then(
      (result) => end(() => resolve({ result, lateMs: watch.lateMs })),
      (error: unknown) => end(() => reject(error)),
    );
  });
}

/** The interval at which the event loop is checked while something is timed. */
const BEAT_MS = 20;
/** A turn of the loop that takes longer than this is late by the excess. */
const ON_TIME_MS = 25;

interface Timed {
  /** A number that changes with each step of the other side. */
  readonly progress: () => number;
  readonly startedAtMs: number;
  /** The progress at the last check, and at the one before. */
  seen: number;
  seenBefore: number;
  /**
   * The time in which a step of the other side waited for this thread, because its event loop was delayed by long work,
   * garbage collection, or a busy machine. A late turn without a step does not count, since the other
   * side made none.
   */
  lateMs: number;
}

/** Measures the late turns of this thread's event loop while something is timed. */
class LateTurns {
  readonly #timed = new Set<Timed>();
  #beat: NodeJS.Timeout | undefined;
  #lookedAtMs = 0;
  /** The lateness of turns whose steps have not been read yet. */
  #lateMs = 0;

  /** Starts timing something. The caller must stop it. */
  start(progress: () => number): Timed {
    const startedAtMs = steadyClock.now();
    if (this.#timed.size === 0) {
      this.#lookedAtMs = startedAtMs;
      this.#beat = world.setInterval(() => this.#look(), BEAT_MS).unref(); // the timed work keeps the process alive
    }
    const seen = progress();
    const timed: Timed = { progress, startedAtMs, seen, seenBefore: seen, lateMs: 0 };
    this.#timed.add(timed);
    return timed;
  }

  stop(timed: Timed): void {
    this.#timed.delete(timed);
    if (this.#timed.size === 0) world.clearInterval(this.#beat);
  }

  /** Resolves when everything that arrived before this call is read, and late turns are charged. */
  settled(): Promise<void> {
    this.#look();
    return new Promise((resolve) =>
      world.setImmediate(() => {
        this.#charge();
        resolve();
      }),
    );
  }

  #look(): void {
    const nowMs = steadyClock.now();
    const lateMs = nowMs - this.#lookedAtMs - ON_TIME_MS;
    this.#lookedAtMs = nowMs;
    for (const timed of this.#timed) {
      if (this.#lateMs === 0) timed.seenBefore = timed.seen;
      timed.seen = timed.progress();
    }
    if (lateMs <= 0) return;
    this.#lateMs += lateMs;
    world.setImmediate(() => this.#charge()); // runs after the sockets were read
  }

  /** Charges late turns to what made a step since the check before them: the step was waiting, or was read late. */
  #charge(): void {
    if (this.#lateMs === 0) return;
    const lateMs = this.#lateMs;
    this.#lateMs = 0;
    for (const timed of this.#timed) {
      if (timed.progress() === timed.seenBefore) continue;
      timed.lateMs += Math.max(0, Math.min(lateMs, this.#lookedAtMs - timed.startedAtMs));
    }
  }
}

/** The late turns of this thread. */
export const lateTurns = (): LateTurns => world.single(LateTurns);
