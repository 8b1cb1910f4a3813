import { FuelError } from '../../base/errors.ts';
import type { ChangeListener, ChangeSignal } from '../../tables/tables.ts';

const POLL_MS = 1_000;

/** Notifies at intervals. It costs a server less if listeners look for changes than if it announces every write. */
export class PolledChanges implements ChangeSignal {
  readonly #listeners = new Set<ChangeListener>();
  readonly #pollMs: number;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(pollMs = POLL_MS) {
    this.#pollMs = pollMs;
  }

  add(listener: ChangeListener): void {
    if (this.#isClosed) throw new FuelError('STORE_CLOSED', 'the tables are closed');
    this.#listeners.add(listener);
    this.#timer ??= setInterval(() => this.notify(), this.#pollMs).unref();
  }

  remove(listener: ChangeListener): void {
    this.#listeners.delete(listener);
    if (this.#listeners.size === 0) this.#stop();
  }

  notify(): void {
    for (const listener of this.#listeners) listener.notify();
  }

  /** Notifies the listeners once more, whose next call finds the tables closed. */
  close(): void {
    this.#isClosed = true;
    this.#stop();
    this.notify();
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
