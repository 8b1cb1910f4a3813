import { availableParallelism } from 'node:os';
import { Readable } from 'node:stream';
import { type CutState, LineCutter } from '../../lines/lines.ts';
import { type NumberedLine, parsedLines, parseLines } from '../../lines/parsed-lines.ts';
import { startThread, type Thread } from '../../thread.ts';
import { type PackedLines, unpackLines } from './packed-lines.ts';
import { type ImportedEvent, parseLine } from './parse-line.ts';

/** To parse less takes no longer than to start a thread. */
const MIN_THREAD_BYTES = 1024 * 1024;
/** Chunks that the thread has, so that it need not wait while a batch is recorded. */
const CHUNKS_AHEAD = 8;
const MEMORY = { youngMb: 16, oldMb: 128 };

type ParsedImport = AsyncGenerator<NumberedLine<ImportedEvent>[]>;

/** The lines of an import: those of a large one are parsed in a thread, where the machine has a core for it. */
export async function* parsedImport(input: AsyncIterable<Buffer>): ParsedImport {
  const chunks = input[Symbol.asyncIterator]();
  const cutter = new LineCutter();
  try {
    for (let bytes = 0; bytes < MIN_THREAD_BYTES; ) {
      const { done, value } = await chunks.next();
      if (done === true) {
        yield parseLines(cutter.end(), parseLine);
        return;
      }
      bytes += value.length;
      yield parseLines(cutter.cut(value), parseLine);
    }
    const rest = { [Symbol.asyncIterator]: () => chunks };
    yield* availableParallelism() > 1
      ? parsedInThread(rest, cutter.state)
      : parsedLines(rest, parseLine, cutter);
  } finally {
    await chunks.return?.();
  }
}

/** The lines of the input behind `from`, parsed in another thread. */
export async function* parsedInThread(input: AsyncIterable<Buffer>, from: CutState): ParsedImport {
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

/** Answers in the order in which it was asked. */
class ParsingThread {
  readonly #thread: Thread;
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
      this.#end,
    );
  }

  /** The lines that this completes. Rejects with the error that ended the thread. */
  parse(message: Buffer | 'end'): Promise<PackedLines> {
    const answer = Promise.withResolvers<PackedLines>();
    this.#waiting.push(answer);
    if (this.#ended === undefined) this.#thread.post(message);
    else answer.reject(this.#ended);
    return answer.promise;
  }

  async stop(): Promise<void> {
    this.#thread.post('stop');
    await this.#thread.ended;
  }

  // Not by a race with the end of the thread, which would keep every answer until then.
  readonly #end = (error: unknown): void => {
    this.#ended = error;
    for (const { reject } of this.#waiting) reject(error);
  };
}
