import { Readable } from 'node:stream';
import { startThread } from '../../base/thread.ts';
import { type LineBlock, type NumberedLine, parseLines } from '../lines/lines.ts';
import { type PackedLines, unpackLines } from './packed-lines.ts';
import { type ImportedEvent, parseLine } from './parse-line.ts';

/** The thread has this many blocks in advance, so that it need not wait while a batch is recorded. */
const BLOCKS_AHEAD = 8;
const MEMORY = { youngMb: 16, oldMb: 128 };

/** Parses blocks of lines in another thread, and in this one while that thread has enough to do, since this one would only wait. */
export async function* parsedInThread(
  blocks: AsyncIterable<LineBlock>,
): AsyncGenerator<NumberedLine<ImportedEvent>[]> {
  /** The requests that the thread has not answered yet, in the order of its answers. */
  const waiting: PromiseWithResolvers<PackedLines>[] = [];
  let ending: unknown;
  const thread = startThread<PackedLines>({
    name: 'the thread that parses the import',
    entry: new URL('./parse-thread.ts', import.meta.url),
    data: {},
    memory: MEMORY,
    onMessage: (lines) => waiting.shift()?.resolve(lines),
  });
  const end = (reason: unknown): void => {
    ending = reason;
    for (const { reject } of waiting) reject(reason);
  };
  thread.ended.then(() => end(new Error('the thread that parses the import has ended')), end);
  const parse = async (block: LineBlock): Promise<NumberedLine<ImportedEvent>[]> => {
    if (ending !== undefined) throw ending;
    if (waiting.length >= BLOCKS_AHEAD) return parseLines(block, parseLine);
    const answer = Promise.withResolvers<PackedLines>();
    waiting.push(answer);
    thread.post(block);
    return unpackLines(await answer.promise);
  };
  try {
    yield* Readable.from(blocks).map(parse, { concurrency: BLOCKS_AHEAD + 1 });
  } finally {
    thread.post('stop');
    await thread.ended;
  }
}
