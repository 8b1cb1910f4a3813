import { Readable } from 'node:stream';
import { startThread, type Thread } from '../../base/thread.ts';
import { type LineBlock, type NumberedLine, parseLines } from '../lines/lines.ts';
import { type PackedLines, unpackLines } from './packed-lines.ts';
import { type ImportedEvent, parseLine } from './parse-line.ts';
import type { ParseThreadMessage } from './parse-thread.ts';

/** Blocks that the thread has, so that it need not wait while a batch is recorded. */
const BLOCKS_AHEAD = 8;
const MEMORY = { youngMb: 16, oldMb: 128 };

/** The lines of the blocks, parsed in another thread, and while that has enough to do in this one, which would wait for it. */
export async function* parsedInThread(
  blocks: AsyncIterable<LineBlock>,
): AsyncGenerator<NumberedLine<ImportedEvent>[]> {
  const thread = new ParsingThread();
  const parse = async (block: LineBlock): Promise<NumberedLine<ImportedEvent>[]> =>
    thread.isBusy ? parseLines(block, parseLine) : unpackLines(await thread.parse(block));
  try {
    yield* Readable.from(blocks).map(parse, { concurrency: BLOCKS_AHEAD + 1 });
  } finally {
    await thread.stop();
  }
}

class ParsingThread {
  readonly #thread: Thread;
  /** Of what it was given, in that order. */
  readonly #waiting: PromiseWithResolvers<PackedLines>[] = [];
  #ended: unknown;

  constructor() {
    this.#thread = startThread<PackedLines>({
      name: 'the thread that parses the import',
      entry: new URL('./parse-thread.ts', import.meta.url),
      data: {},
      memory: MEMORY,
      onMessage: (lines) => this.#waiting.shift()?.resolve(lines),
    });
    this.#thread.ended.then(
      () => this.#end(new Error('the thread that parses the import has ended')),
      (error) => this.#end(error),
    );
  }

  get isBusy(): boolean {
    return this.#waiting.length >= BLOCKS_AHEAD;
  }

  /** The lines of the block. Rejects with the error that ended the thread. */
  parse(block: LineBlock): Promise<PackedLines> {
    const answer = Promise.withResolvers<PackedLines>();
    this.#waiting.push(answer);
    if (this.#ended === undefined) this.#post(block);
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
