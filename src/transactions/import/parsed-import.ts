import { availableParallelism } from 'node:os';
import { Readable } from 'node:stream';
import { type CutState, LineCutter } from '../../lines/lines.ts';
import { type NumberedLine, parsedLines, parseLines } from '../../lines/parsed-lines.ts';
import { startThread } from '../../thread.ts';
import { type PackedLines, unpackLines } from './packed-lines.ts';
import { type ImportedEvent, parseLine } from './parse-line.ts';

/** To parse less takes no longer than to start a thread. */
const MIN_THREAD_BYTES = 1024 * 1024;
/** Chunks that the thread has, so that it need not wait while a batch is recorded. */
const CHUNKS_AHEAD = 8;
const MEMORY = { youngMb: 32, oldMb: 128 };

type ParsedImport = AsyncGenerator<NumberedLine<ImportedEvent>[]>;

/** The lines of an import: those of a large one are parsed in a thread, where the machine has a core for it. */
export async function* parsedImport(input: AsyncIterable<Buffer>): ParsedImport {
  const chunks = input[Symbol.asyncIterator]();
  const cutter = new LineCutter();
  try {
    for (let bytes = 0; bytes < MIN_THREAD_BYTES; ) {
      const { done, value } = await chunks.next();
      if (done === true) return yield parseLines(cutter.end(), parseLine);
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
  const waiting: ((lines: PackedLines) => void)[] = [];
  const thread = startThread<PackedLines>({
    name: 'the thread that parses the import',
    entry: new URL('./parse-thread.ts', import.meta.url),
    data: from,
    memory: MEMORY,
    onMessage: (lines) => waiting.shift()?.(lines),
  });
  const endedEarly = thread.ended.then(() => {
    throw new Error('the thread that parses the import has ended');
  });
  endedEarly.catch(() => undefined); // whoever waits for lines then is told
  const parse = (message: Buffer | 'end'): Promise<PackedLines> => {
    const lines = new Promise<PackedLines>((resolve) => waiting.push(resolve));
    thread.post(message);
    return Promise.race([lines, endedEarly]);
  };
  try {
    for await (const lines of Readable.from(input).map(parse, { concurrency: CHUNKS_AHEAD }))
      yield unpackLines(lines);
    yield unpackLines(await parse('end'));
  } finally {
    thread.post('stop');
    await thread.ended;
  }
}
