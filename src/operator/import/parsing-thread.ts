import { Readable } from 'node:stream';
import { startThread, type Thread } from '../../base/thread.ts';
import type { CutState, NumberedLine } from '../lines/lines.ts';
import { type PackedLines, unpackLines } from './packed-lines.ts';
import type { ImportedEvent } from './parse-line.ts';
import type { ParseThreadMessage } from './parse-thread.ts';

/** Chunks that the thread has, so that it need not wait while a batch is recorded. */
const CHUNKS_AHEAD = 8;
const MEMORY = { youngMb: 16, oldMb: 128 };

/** The lines of the input, which continues where another cutter is, parsed in another thread. */
export async function* parsedInThread(
  input: AsyncIterable<Buffer>,
  from: CutState,
): AsyncGenerator<NumberedLine<ImportedEvent>[]> {
  const thread = new ParsingThread(from);
  const parse = (chunk: Buffer): Promise<PackedLines> => thread.parse(chunk);
  try {
    for await (const lines of Readable.from(input).map(parse, { concurrency: CHUNKS_AHEAD }))
      yield unpackLines(lines);
    yield unpackLines(await thread.parse('end'));
  } finally {
    await thread.stop();
  }
}

class ParsingThread {
  readonly #thread: Thread;
  /** Of what it was given, in that order. */
  readonly #waiting: PromiseWithResolvers<PackedLines>[] = [];
  #ended: unknown;

  constructor(from: CutState) {
    this.#thread = startThread<PackedLines>({
      name: 'the thread that parses the import',
      entry: new URL('./parse-thread.ts', import.meta.url),
      data: from,
      memory: MEMORY,
      onMessage: (lines) => this.#waiting.shift()?.resolve(lines),
    });
    this.#thread.ended.then(
      () => this.#end(new Error('the thread that parses the import has ended')),
      (error) => this.#end(error),
    );
  }

  /** The lines that this completes. Rejects with the error that ended the thread. */
  parse(message: Buffer | 'end'): Promise<PackedLines> {
    const answer = Promise.withResolvers<PackedLines>();
    this.#waiting.push(answer);
    if (this.#ended === undefined) this.#post(message);
    else answer.reject(this.#ended);
    return answer.promise;
  }

  /** Resolves when it has ended; rejects with the error that ended it. */
  async stop(): Promise<void> {
    this.#post('stop');
    await this.#thread.ended;
  }

  #post(message: ParseThreadMessage): void {
    this.#thread.post(message);
  }

  /** Not by a race of each answer with the end, which would keep every answer until then. */
  #end(error: unknown): void {
    this.#ended = error;
    for (const { reject } of this.#waiting) reject(error);
  }
}
