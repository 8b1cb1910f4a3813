import type { Position } from '../../event-store/event-store.ts';

/** A directory that has not come that far by then has lost its store, or much to read. */
const PATIENCE_MS = 100;

interface Waiter {
  readonly position: Position;
  readonly resolve: () => void;
}

/** Lets others wait until a live directory is as far as the events that they have seen. */
export class DirectoryReach {
  readonly #waiting = new Set<Waiter>();
  #position: Position = 0;

  /** The directory is there. */
  moved(position: Position): void {
    this.#position = position;
    for (const waiter of this.#waiting) if (waiter.position <= position) waiter.resolve();
  }

  /** Resolves when the directory is there, or after a tenth of a second: who waits must bear that it is not. */
  async reach(position: Position): Promise<void> {
    if (this.#position >= position) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiter = { position, resolve };
    const timer = setTimeout(resolve, PATIENCE_MS);
    this.#waiting.add(waiter);
    await promise;
    clearTimeout(timer);
    this.#waiting.delete(waiter);
  }
}
