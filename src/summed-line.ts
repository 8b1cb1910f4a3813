const BETWEEN_LINES_MS = 1_000;

/**
 * Tells of what strangers can make happen any number of times in at most one line a second: the first time at once,
 * then how often it happened since the line before, by reason.
 */
export class SummedLine {
  readonly #write: (counts: Readonly<Record<string, number>>, last: string | undefined) => void;
  #counts = new Map<string, number>();
  #last: string | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(write: (counts: Readonly<Record<string, number>>, last: string | undefined) => void) {
    this.#write = write;
  }

  add(reason: string, detail?: string): void {
    this.#counts.set(reason, (this.#counts.get(reason) ?? 0) + 1);
    this.#last = detail;
    if (this.#timer === undefined) this.#tell();
  }

  /** Tells what has not been told yet. */
  end(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#counts.size > 0) this.#write(Object.fromEntries(this.#counts), this.#last);
    this.#counts.clear();
  }

  #tell(): void {
    this.end();
    this.#timer = setTimeout(() => {
      if (this.#counts.size > 0) this.#tell();
      else this.#timer = undefined;
    }, BETWEEN_LINES_MS).unref();
  }
}
