import type { EventRef } from '../../event-store/recorded-event.ts';

/** One line of `streams.jsonl`: a stream of the account, as of the checkpoint. */
export interface ExportedStream {
  readonly stream: string;
  /** The revision of its last event, from 0. */
  readonly revision: number;
  /** The revisions that the export leaves out: erased and redacted events, and those outside its range. Ascending. */
  readonly left_out: readonly number[];
}

/** The streams of an export, while the events of the log pass. */
export class ExportedStreams {
  readonly #streams = new Map<string, { revision: number; readonly leftOut: number[] }>();

  has(stream: string): boolean {
    return this.#streams.has(stream);
  }

  /** Adds the next event of a stream. Those before it that were not added have been erased. */
  add({ stream, revision }: EventRef, isExported: boolean): void {
    const known = this.#streams.get(stream) ?? { revision: -1, leftOut: [] };
    this.#streams.set(stream, known);
    for (let erased = known.revision + 1; erased < revision; erased++) known.leftOut.push(erased);
    if (!isExported) known.leftOut.push(revision);
    known.revision = revision;
  }

  lines(): ExportedStream[] {
    return [...this.#streams].map(([stream, { revision, leftOut }]) => ({
      stream,
      revision,
      left_out: leftOut,
    }));
  }
}

/** Finds what an export lacks of its streams, or has twice, while its events pass. */
export class ExpectedStreams {
  readonly #streams: ReadonlyMap<
    string,
    { readonly last: number; readonly leftOut: ReadonlySet<number>; next: number }
  >;

  constructor(streams: readonly ExportedStream[]) {
    this.#streams = new Map(
      streams.map(({ stream, revision, left_out }) => {
        const leftOut = new Set(left_out);
        return [stream, { last: revision, leftOut, next: following(-1, leftOut) }];
      }),
    );
  }

  /** Takes the next event of the export. Returns what is wrong with its place in its stream. */
  take({ stream, revision }: EventRef): string | undefined {
    const expected = this.#streams.get(stream);
    if (expected === undefined) return 'its stream is not one of the export';
    const { next, last, leftOut } = expected;
    if (revision > last || leftOut.has(revision)) return 'the export does not say that it has this event';
    if (revision < next) return 'it is there twice, or out of order';
    expected.next = following(revision, leftOut);
    if (revision > next) return `${stream}@${next} is missing before it`;
    return undefined;
  }

  /** Returns the first event that is missing at the end of each stream. */
  missing(): string[] {
    return [...this.#streams].flatMap(([stream, { next, last }]) =>
      next > last ? [] : [`${stream}@${next}`],
    );
  }
}

/** The next revision that is not left out. */
function following(revision: number, leftOut: ReadonlySet<number>): number {
  let next = revision + 1;
  while (leftOut.has(next)) next++;
  return next;
}
