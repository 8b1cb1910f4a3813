import { world } from '../world.ts';

/** Of the limit: a process that is late for longer gives up, before another one takes over what it does. */
const MAX_STRETCH = 7;

export interface TimedWork<T> {
  readonly limitMs: number;
  /** The signal aborts when its result is no longer waited for. */
  readonly work: (signal: AbortSignal) => Promise<T>;
  /** The result when the time is over first. */
  readonly expired: (lateMs: number) => T;
  /** Changes with each step of the other side. Without it nothing is known of steps, and all the time counts. */
  readonly progress?: () => number;
}

export interface TimedResult<T> {
  readonly result: T;
  /** How long a step of the other side waited for this process. */
  readonly lateMs: number;
}

/**
 * Runs `work` for at most `limitMs` of the other side's time: where a step of it waited for this process, that is not
 * counted, up to seven times the limit in all. When the timer fires, the event loop turns once more first: what arrived
 * while this process was busy is in time. Rejects as `work` does.
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
      const leftMs = startedAtMs + Math.min(limitMs + lateMs, limitMs * MAX_STRETCH) - world.elapsedMs();
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

/** While something is timed, this is how often the event loop is looked at. */
const BEAT_MS = 20;
/** A turn of the loop that takes longer is late by the rest. */
const ON_TIME_MS = 25;

interface Timed {
  /** Changes with each step that the other side makes. */
  readonly progress: () => number;
  readonly startedAtMs: number;
  /** At the last look, and at the one before. */
  seen: number;
  seenBefore: number;
  /**
   * The part of its time in which a step of the other side waited for this thread: its event loop was behind long work,
   * garbage collection, or a machine without time for it. Of a late turn that no step ended nothing counts: the other
   * side had not made one.
   */
  lateMs: number;
}

/** Sees the late turns of this thread's event loop while something is timed. */
class LateTurns {
  readonly #timed = new Set<Timed>();
  #beat: NodeJS.Timeout | undefined;
  #lookedAtMs = 0;
  /** Of the turns whose steps are not read yet. */
  #lateMs = 0;

  /** To be stopped when it is read no more. */
  start(progress: () => number): Timed {
    const startedAtMs = world.elapsedMs();
    if (this.#timed.size === 0) {
      this.#lookedAtMs = startedAtMs;
      this.#beat = world.setInterval(() => this.#look(), BEAT_MS).unref(); // whoever times something waits for that
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

  /** Resolves when what arrived before this call is read, and late turns are charged. */
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
    const nowMs = world.elapsedMs();
    const lateMs = nowMs - this.#lookedAtMs - ON_TIME_MS;
    this.#lookedAtMs = nowMs;
    for (const timed of this.#timed) {
      if (this.#lateMs === 0) timed.seenBefore = timed.seen;
      timed.seen = timed.progress();
    }
    if (lateMs <= 0) return;
    this.#lateMs += lateMs;
    world.setImmediate(() => this.#charge()); // after the sockets were read
  }

  /** A step since the look before the late turn was waiting, or was read late in it. */
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

/** Of this thread. */
export const lateTurns = (): LateTurns => world.single(LateTurns);
