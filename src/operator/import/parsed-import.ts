import { availableParallelism } from 'node:os';
import { LineCutter } from '../lines/lines.ts';
import { type NumberedLine, parsedLines, parseLines } from '../lines/parsed-lines.ts';
import { type ImportedEvent, parseLine } from './parse-line.ts';
import { parsedInThread } from './parsing-thread.ts';

/** To parse less takes no longer than to start a thread. */
const MIN_THREAD_BYTES = 1024 * 1024;

/**
 * The lines of an import. Those behind the first mebibyte are parsed in a thread, where the machine has a core for it.
 */
export async function* parsedImport(
  input: AsyncIterable<Buffer>,
): AsyncGenerator<NumberedLine<ImportedEvent>[]> {
  const chunks = input[Symbol.asyncIterator]();
  const cutter = new LineCutter();
  try {
    for (let bytes = 0; bytes < MIN_THREAD_BYTES; ) {
      const { done, value } = await chunks.next();
      if (done === true) {
        yield parseLines(cutter.end(), parseLine);
        return;
      }
      yield parseLines(cutter.cut(value), parseLine);
      bytes += value.length;
    }
    const rest = { [Symbol.asyncIterator]: () => chunks };
    yield* availableParallelism() > 1
      ? parsedInThread(rest, cutter.state)
      : parsedLines(rest, parseLine, cutter);
  } finally {
    await chunks.return?.();
  }
}
