export interface TimedWork<T> {
  readonly limitMs: number;
  /** Is told by the signal when its result is no longer waited for. */
  readonly work: (signal: AbortSignal) => Promise<T>;
  /** What it came to when the time ran out first. */
  readonly expired: () => T;
}

/**
 * Runs `work` for at most `limitMs`. When the timer fires, the loop turns once more before it counts: what
 * had arrived while this process was busy elsewhere is in time. Rejects as `work` does.
 */
export function withinTime<T>({ limitMs, work, expired }: TimedWork<T>): Promise<T> {
  const startedAt = performance.now();
  const controller = new AbortController();
  return new Promise<T>((resolve, reject) => {
    let timer = setTimeout(fired, limitMs);
    let ended = false;

    /** A timer counts from the start of the loop's turn that set it, so it may fire early. */
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
