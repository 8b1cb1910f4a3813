/** Pages that are made at a time. */
const MAX_AT_ONCE = 4;
/** A turn ends this long after its page, so that customers' requests get most of the thread that makes the pages. */
const REST_MS = 200;
const MAX_WAIT_MS = 4_000;

/** Bounds how many pages are made at once, and how many in a second. */
export class PageTurns {
  #free = MAX_AT_ONCE;
  /** Those who wait for a turn, in the order in which they came. */
  readonly #waiting = new Set<() => void>();

  /** What `make` gives; `undefined` where no turn comes in time. Rejects as `make`. */
  async take<T>(make: () => Promise<T>): Promise<T | undefined> {
    if (this.#free > 0) this.#free--;
    else if (!(await this.#turn())) return undefined;
    try {
      return await make();
    } finally {
      setTimeout(() => this.#pass(), REST_MS).unref();
    }
  }

  async #turn(): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const take = (): void => resolve(true);
    const timer = setTimeout(resolve, MAX_WAIT_MS, false);
    this.#waiting.add(take);
    const got = await promise;
    clearTimeout(timer);
    this.#waiting.delete(take);
    return got;
  }

  #pass(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#free++;
    else next();
  }
}
