/** Pages that are made at a time. */
const MAX_AT_ONCE = 4;
/** A turn ends this long after its page, so that customers' requests get most of the thread that makes the pages. */
const REST_MS = 200;
const MAX_WAITING = 100;
const MAX_WAIT_MS = 4_000;

/** Bounds how many pages are made at once, and how many in a second. */
export class PageTurns {
  #taken = 0;
  /** Given `true` with a turn, `false` where none came in time. */
  readonly #waiting = new Set<(got: boolean) => void>();

  /** What `make` gives; `undefined` where too many wait before it. Rejects as `make`. */
  async take<T>(make: () => Promise<T>): Promise<T | undefined> {
    if (!(await this.#turn())) return undefined;
    try {
      return await make();
    } finally {
      setTimeout(() => this.#next(), REST_MS).unref();
    }
  }

  async #turn(): Promise<boolean> {
    if (this.#taken < MAX_AT_ONCE) {
      this.#taken++;
      return true;
    }
    if (this.#waiting.size >= MAX_WAITING) return false;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#waiting.add(resolve);
    const timer = setTimeout(resolve, MAX_WAIT_MS, false);
    const got = await promise;
    clearTimeout(timer);
    this.#waiting.delete(resolve);
    return got;
  }

  #next(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#taken--;
      return;
    }
    next(true);
  }
}
