import { world } from './world.ts';

/** Wakes one waiter. A notification is remembered while nobody waits, so none is lost between reading and waiting. */
export class Signal {
  #notified = false;
  #wake: (() => void) | undefined;

  get isNotified(): boolean {
    return this.#notified;
  }

  notify(): void {
    this.#notified = true;
    this.#wake?.();
  }

  /** Forgets earlier notifications: call it before reading what they announced. */
  reset(): void {
    this.#notified = false;
  }

  /** Resolves at the next `notify` since `reset`, or after `timeoutMs`; at once if that is not positive. */
  async wait(timeoutMs: number): Promise<void> {
    if (this.#notified) return;
    await new Promise<void>((resolve) => {
      const timer = world.setTimeout(resolve, Math.max(0, timeoutMs));
      this.#wake = () => {
        world.clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = undefined;
  }
}
