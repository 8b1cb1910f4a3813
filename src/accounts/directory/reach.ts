import type { Position } from '../../event-store/event-store.ts';

/** A directory that is later than this has lost its store, or has much to read. */
const MAX_WAIT_MS = 100;

interface Waiter {
  readonly position: Position;
  readonly resolve: () => void;
}

/** Waits until a live directory has reached a position. */
export class DirectoryReach {
  readonly #waiting = new Set<Waiter>();
  #position: Position = 0;

  moved(position: Position): void {
    this.#position = position;
    for (const waiter of this.#waiting) if (waiter.position <= position) waiter.resolve();
  }

  /** Resolves when the directory is there, or after a tenth of a second: the caller must check again. */
  async reach(position: Position): Promise<void> {
    if (this.#position >= position) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiter = { position, resolve };
    const timer = setTimeout(resolve, MAX_WAIT_MS);
    this.#waiting.add(waiter);
    await promise;
    clearTimeout(timer);
    this.#waiting.delete(waiter);
  }
}
