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
    const startedAtMs = performance.now();
    if (this.#timed.size === 0) {
      this.#lookedAtMs = startedAtMs;
      this.#beat = setInterval(() => this.#look(), BEAT_MS).unref(); // whoever times something waits for that
    }
    const seen = progress();
    const timed: Timed = { progress, startedAtMs, seen, seenBefore: seen, lateMs: 0 };
    this.#timed.add(timed);
    return timed;
  }

  stop(timed: Timed): void {
    this.#timed.delete(timed);
    if (this.#timed.size === 0) clearInterval(this.#beat);
  }

  /** Resolves when what arrived before this call is read, and late turns are charged. */
  settled(): Promise<void> {
    this.#look();
    return new Promise((resolve) =>
      setImmediate(() => {
        this.#charge();
        resolve();
      }),
    );
  }

  #look(): void {
    const nowMs = performance.now();
    const lateMs = nowMs - this.#lookedAtMs - ON_TIME_MS;
    this.#lookedAtMs = nowMs;
    for (const timed of this.#timed) {
      if (this.#lateMs === 0) timed.seenBefore = timed.seen;
      timed.seen = timed.progress();
    }
    if (lateMs <= 0) return;
    this.#lateMs += lateMs;
    setImmediate(() => this.#charge()); // after the sockets were read
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
export const lateTurns = new LateTurns();
