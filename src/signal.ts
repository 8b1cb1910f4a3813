/** Wakes one waiter. A ring while nobody waits is remembered, so that none is lost between read and wait. */
export class Bell {
  #rung = false;
  #wake: (() => void) | undefined;

  get hasRung(): boolean {
    return this.#rung;
  }

  ring(): void {
    this.#rung = true;
    this.#wake?.();
  }

  /** Forgets earlier rings: call it before reading what they announced. */
  reset(): void {
    this.#rung = false;
  }

  /** Resolves at the next ring since `reset`, or after `timeoutMs`, at once where that has passed already. */
  async wait(timeoutMs: number): Promise<void> {
    if (this.#rung) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, Math.max(0, timeoutMs));
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = undefined;
  }
}
