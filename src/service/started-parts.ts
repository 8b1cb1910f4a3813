import type { Log } from '../base/log.ts';

export interface Part {
  /** For the log. */
  readonly name: string;
  readonly stop: () => Promise<void> | void;
  /** Rejects when the part ends with an error; stays pending while it works. */
  readonly failed?: Promise<never>;
}

/** The parts of a process, in the order in which they were started. */
export class StartedParts {
  readonly #log: Log;
  readonly #parts: Part[] = [];
  readonly #failed = Promise.withResolvers<never>();

  constructor(log: Log) {
    this.#log = log;
    this.#failed.promise.catch(() => undefined); // no unhandled rejection: `failed` may be read later
  }

  /** Rejects with the error of the first part that fails, also if it failed earlier. */
  get failed(): Promise<never> {
    return this.#failed.promise;
  }

  add(part: Part): void {
    this.#parts.push(part);
    part.failed?.catch(this.#failed.reject);
  }

  /** Adds a part that works until `stopping` aborts, and then ends. */
  addRunning(name: string, ended: Promise<void>, stopping: AbortController): void {
    this.add({
      name,
      failed: ended.then(() => new Promise<never>(() => undefined)),
      async stop() {
        stopping.abort();
        await ended.catch(() => undefined); // reported through `failed`
      },
    });
  }

  /**
   * Stops all parts, the last one first. Logs a part that fails to stop, and stops the others. Rejects with an
   * `AggregateError` of all failures.
   */
  async stop(): Promise<void> {
    const errors: unknown[] = [];
    for (const { name, stop } of this.#parts.splice(0).reverse()) {
      try {
        await stop();
        this.#log.debug({ part: name }, 'part stopped');
      } catch (error) {
        this.#log.error({ err: error, part: name }, 'a part did not stop in order');
        errors.push(error);
      }
    }
    if (errors.length > 0) throw new AggregateError(errors, `${errors.length} parts did not stop in order`);
  }
}
