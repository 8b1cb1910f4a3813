import type { Place } from '../transactions-view.ts';

/** Reads up to `count` places of one run behind `after` (from its start when undefined), newest first. */
export type ReadRun = (after: Place | undefined, count: number) => readonly Place[];

const SMALLEST_BLOCK = 4;

/**
 * Merges runs that are each newest first, and returns the first `count` places of all. Reads each run in
 * blocks, small ones where there are many runs, so that hundreds of runs cost little more than the answer,
 * and never more than `count` places of any run.
 */
export function mergeRuns(
  runs: readonly ReadRun[],
  count: number,
): { readonly places: Place[]; readonly entriesRead: number } {
  const block = Math.min(count, Math.max(SMALLEST_BLOCK, Math.ceil((2 * count) / runs.length)));
  const cursors = runs.map((read) => new RunCursor(read, count, block));
  const places: Place[] = [];
  while (places.length < count) {
    let newest: RunCursor | undefined;
    for (const cursor of cursors) {
      if (cursor.head !== undefined && (newest?.head === undefined || isNewer(cursor.head, newest.head))) {
        newest = cursor;
      }
    }
    if (newest?.head === undefined) break;
    places.push(newest.head);
    newest.advance();
  }
  return { places, entriesRead: cursors.reduce((sum, cursor) => sum + cursor.entriesRead, 0) };
}

function isNewer(a: Place, b: Place): boolean {
  return a.createdAtMs !== b.createdAtMs ? a.createdAtMs > b.createdAtMs : a.id > b.id;
}

class RunCursor {
  head: Place | undefined;
  entriesRead = 0;
  readonly #read: ReadRun;
  readonly #most: number;
  readonly #block: number;
  #buffer: readonly Place[] = [];
  #next = 0;
  #ended = false;

  constructor(read: ReadRun, most: number, block: number) {
    this.#read = read;
    this.#most = most;
    this.#block = block;
    this.advance();
  }

  advance(): void {
    if (this.#next === this.#buffer.length) this.#fill();
    this.head = this.#buffer[this.#next++];
  }

  #fill(): void {
    const count = Math.min(this.#block, this.#most - this.entriesRead);
    this.#buffer = this.#ended || count === 0 ? [] : this.#read(this.head, count);
    this.#next = 0;
    this.#ended = this.#buffer.length < count;
    this.entriesRead += this.#buffer.length;
  }
}
