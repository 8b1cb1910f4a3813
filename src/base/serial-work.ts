/** Runs pieces of work one after another, in the order they were given. */
export class SerialWork {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => undefined); // the caller gets the error
    return result;
  }

  /** Waits for all the work given so far. */
  async whenIdle(): Promise<void> {
    await this.#last;
  }
}
