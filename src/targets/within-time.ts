export interface TimedWork<T> {
  readonly limitMs: number;
  /** The signal aborts when its result is no longer waited for. */
  readonly work: (signal: AbortSignal) => Promise<T>;
  /** The result when the time is over first. */
  readonly expired: () => T;
}

/**
 * Runs `work` for at most `limitMs`. When the timer fires, the event loop turns once more first: what arrived while
 * this process was busy is in time. Rejects as `work` does.
 */
export function withinTime<T>({ limitMs, work, expired }: TimedWork<T>): Promise<T> {
  const startedAt = performance.now();
  const controller = new AbortController();
  return new Promise<T>((resolve, reject) => {
    let timer = setTimeout(fired, limitMs);
    let ended = false;

    /** A timer counts from the start of the event loop's turn in which it was set, so it may fire early. */
    function fired(): void {
      const leftMs = limitMs - (performance.now() - startedAt);
      if (leftMs > 0) timer = setTimeout(fired, Math.ceil(leftMs));
      else setImmediate(giveUp);
    }

    function giveUp(): void {
      if (ended) return;
      resolve(expired());
      controller.abort();
    }

    function end(): void {
      ended = true;
      clearTimeout(timer);
    }

    work(controller.signal).then(
      (result) => {
        end();
        resolve(result);
      },
      (error: unknown) => {
        end();
        reject(error);
      },
    );
  });
}
