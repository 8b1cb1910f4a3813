import { FuelError } from '../../../base/errors.ts';
import type { WorkListener, WorkSignal } from '../../../push/queue/delivery-queue.ts';

/**
 * Notifies at once of what this process made due, and by polling of what other processes made due: one query every
 * `pollMs` while there are listeners. What is due later, such as the deliveries of a process that died, is found when
 * it is due.
 */
export class PolledSignal implements WorkSignal {
  readonly #listeners = new Set<WorkListener>();
  readonly #isDue: () => Promise<boolean>;
  readonly #pollMs: number;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: { readonly isDue: () => Promise<boolean>; readonly pollMs: number }) {
    this.#isDue = options.isDue;
    this.#pollMs = options.pollMs;
  }

  get isPolling(): boolean {
    return this.#timer !== undefined;
  }

  /** Throws `STORE_CLOSED` after `close`. */
  add(listener: WorkListener): void {
    if (this.#closed) throw new FuelError('STORE_CLOSED', 'the delivery queue was closed');
    this.#listeners.add(listener);
    if (this.#timer === undefined) this.#pollLater();
  }

  remove(listener: WorkListener): void {
    this.#listeners.delete(listener);
    if (this.#listeners.size === 0) this.#stop();
  }

  notify(): void {
    for (const listener of this.#listeners) listener.notify();
  }

  /** Notifies once more, so that waiting listeners find it closed. */
  close(): void {
    this.#closed = true;
    this.#stop();
    this.notify();
    this.#listeners.clear();
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #pollLater(): void {
    const timer = setTimeout(() => void this.#poll(timer), this.#pollMs);
    timer.unref(); // polling does not keep the process alive
    this.#timer = timer;
  }

  async #poll(timer: NodeJS.Timeout): Promise<void> {
    let due = false;
    try {
      due = await this.#isDue();
    } catch {
      // A timer has no caller to report to; the next call on the store meets the error and reports it.
    }
    if (this.#timer !== timer) return; // there was no listener meanwhile
    this.#pollLater();
    if (due) this.notify();
  }
}
