import { createHash } from 'node:crypto';

export interface Entry {
  readonly atMs: number;
  /** Which process did it; empty: the world around them. */
  readonly who: string;
  readonly what: string;
}

/** What happened in a run, in its order. Two runs of one seed have the same print. */
export class History {
  readonly entries: Entry[] = [];
  readonly #print = createHash('sha256');
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  add(who: string, what: string): void {
    const atMs = this.#now();
    this.entries.push({ atMs, who, what });
    this.#print.update(`${atMs} ${who} ${what}\n`);
  }

  get print(): string {
    return this.#print.copy().digest('hex').slice(0, 16);
  }

  /** The lines that name one of these texts, or the last ones. */
  about(texts: readonly string[], last = 60): string[] {
    const found =
      texts.length === 0
        ? this.entries
        : this.entries.filter(({ what }) => texts.some((text) => what.includes(text)));
    return found.slice(-last).map(lineOf);
  }
}

export function lineOf({ atMs, who, what }: Entry): string {
  return `${new Date(atMs).toISOString()} ${who.padEnd(8)} ${what}`;
}
