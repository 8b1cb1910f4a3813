import type { Log } from '../log.ts';

export interface Part {
  /** As the log names it. */
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
    this.#failed.promise.catch(() => undefined); // for whoever asks for `failed`, which may be later
  }

  /** Rejects with the error of the first part that fails, also of one that failed before it was asked for. */
  get failed(): Promise<never> {
    return this.#failed.promise;
  }

  add(part: Part): void {
    this.#parts.push(part);
    part.failed?.catch(this.#failed.reject);
  }

  /**
   * Stops all of them, the last one first. A part that fails to stop is logged, and the others are stopped all the
   * same. Rejects with an `AggregateError` of all failures.
   */
  async stop(): Promise<void> {
    const errors: unknown[] = [];
    for (const { name, stop } of this.#parts.splice(0).reverse()) {
      try {
        await stop();
      } catch (error) {
        this.#log.error({ err: error, part: name }, 'a part did not stop in order');
        errors.push(error);
      }
    }
    if (errors.length > 0) throw new AggregateError(errors, `${errors.length} parts did not stop in order`);
  }
}
