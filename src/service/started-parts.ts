import type { Log } from '../base/log.ts';

export interface Part {
  stop(): Promise<void> | void;
  /** Rejects when the part ends with an error. Stays pending while it works. */
  readonly failed?: Promise<never>;
}

/** The parts of a process, in the order in which they were started. */
export class StartedParts {
  readonly #log: Log;
  readonly #stack = new AsyncDisposableStack();
  readonly #failed = Promise.withResolvers<never>();

  constructor(log: Log) {
    this.#log = log;
    this.#failed.promise.catch(() => undefined); // not an unhandled rejection: `failed` may be read later
  }

  /** Rejects with the error of the first part that fails or has failed. */
  get failed(): Promise<never> {
    return this.#failed.promise;
  }

  /** Adds a started part. `name` is for the log. */
  add<P extends Part>(name: string, part: P): P {
    part.failed?.catch(this.#failed.reject);
    this.#stack.defer(async () => {
      try {
        await part.stop();
        this.#log.debug({ part: name }, 'part stopped');
      } catch (error) {
        this.#log.error({ err: error, part: name }, 'a part did not stop cleanly');
        throw error;
      }
    });
    return part;
  }

  /** Stops all parts, the last one first, even if one fails to stop. Rejects with the errors of those. */
  stop(): Promise<void> {
    return this.#stack.disposeAsync();
  }
}

/** Makes a part of work that runs until it is asked to stop. */
export function running(
  work: (signal: AbortSignal) => Promise<void>,
  stopping = new AbortController(),
): Part {
  const ended = work(stopping.signal);
  return {
    failed: ended.then(() => new Promise<never>(() => undefined)),
    async stop() {
      stopping.abort();
      await ended.catch(() => undefined); // reported through `failed`
    },
  };
}
