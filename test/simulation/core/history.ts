import { createHash } from 'node:crypto';

interface Entry {
  readonly atMs: number;
  /** The process that did it; empty for the world around the processes. */
  readonly process: string;
  readonly what: string;
}

/** The events of a run, in order. Two runs of one seed have the same print. */
export class History {
  readonly entries: Entry[] = [];
  readonly #print = createHash('sha256');
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  add(process: string, what: string): void {
    const atMs = this.#now();
    this.entries.push({ atMs, process, what });
    this.#print.update(`${atMs} ${process} ${what}\n`);
  }

  get print(): string {
    return this.#print.copy().digest('hex').slice(0, 16);
  }

  /** Returns the last lines that contain one of these texts, or the last lines if there are none. */
  about(texts: readonly string[], last = 60): string[] {
    const found =
      texts.length === 0
        ? this.entries
        : this.entries.filter(({ what }) => texts.some((text) => what.includes(text)));
    return found.slice(-last).map(lineOf);
  }
}

function lineOf({ atMs, process, what }: Entry): string {
  return `${new Date(atMs).toISOString()} ${process.padEnd(8)} ${what}`;
}
