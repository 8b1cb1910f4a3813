import { startStopwatch } from './loop-clock.ts';

/** Of the limit: a process that is late for longer gives up, before another one takes over what it does. */
const MAX_STRETCH = 7;

export interface TimedWork<T> {
  readonly limitMs: number;
  /** The signal aborts when its result is no longer waited for. */
  readonly work: (signal: AbortSignal) => Promise<T>;
  /** The result when the time is over first. `lateMs`: what was not counted. */
  readonly expired: (lateMs: number) => T;
}

/**
 * Runs `work` for at most `limitMs` of time in which this process could have acted: what it is late itself is not
 * counted, up to seven times the limit in all. When the timer fires, the event loop turns once more first: what arrived
 * meanwhile is in time. Rejects as `work` does.
 */
export function withinTime<T>({ limitMs, work, expired }: TimedWork<T>): Promise<T> {
  const controller = new AbortController();
  const watch = startStopwatch();
  return new Promise<T>((resolve, reject) => {
    let timer = setTimeout(fired, limitMs);
    let ended = false;

    /** A timer counts from the start of the event loop's turn in which it was set, so it may fire early. */
    function fired(): void {
      const { elapsedMs, lateMs } = watch.read();
      const leftMs = Math.min(limitMs - (elapsedMs - lateMs), limitMs * MAX_STRETCH - elapsedMs);
      if (leftMs > 0) timer = setTimeout(fired, Math.ceil(leftMs));
      else setImmediate(giveUp);
    }

    function giveUp(): void {
      if (ended) return;
      const { lateMs } = watch.read();
      end();
      resolve(expired(lateMs));
      controller.abort();
    }

    function end(): void {
      ended = true;
      clearTimeout(timer);
      watch.stop();
    }

    work(controller.signal).then(
      (result) => {
        if (!ended) end();
        resolve(result);
      },
      (error: unknown) => {
        if (!ended) end();
        reject(error);
      },
    );
  });
}
