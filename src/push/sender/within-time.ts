import { lateTurns } from './late-turns.ts';

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
  const watch = lateTurns.start(progress);
  return new Promise((resolve, reject) => {
    let timer = setTimeout(() => void fired(), limitMs);
    let ended = false;

    /** A timer counts from the start of the event loop's turn in which it was set, so it may fire early. */
    async function fired(): Promise<void> {
      if (wait()) return;
      await lateTurns.settled();
      if (ended || wait()) return;
      end(() => resolve({ result: expired(watch.lateMs), lateMs: watch.lateMs }));
      controller.abort();
    }

    function wait(): boolean {
      const { startedAtMs, lateMs } = watch;
      const leftMs = startedAtMs + Math.min(limitMs + lateMs, limitMs * MAX_STRETCH) - performance.now();
      if (leftMs > 0) timer = setTimeout(() => void fired(), Math.ceil(leftMs));
      return leftMs > 0;
    }

    function end(settle: () => void): void {
      if (ended) return;
      ended = true;
      clearTimeout(timer);
      lateTurns.stop(watch);
      settle();
    }

    work(controller.signal).then(
      (result) => end(() => resolve({ result, lateMs: watch.lateMs })),
      (error: unknown) => end(() => reject(error)),
    );
  });
}
