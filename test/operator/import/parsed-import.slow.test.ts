import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parsedImport } from '../../../src/operator/import/import-transactions.ts';
import { type ImportedEvent, parseLine } from '../../../src/operator/import/parse-line.ts';
import { parsedInThread } from '../../../src/operator/import/parsing-thread.ts';
import { lineBlocks, type NumberedLine, parsedLines } from '../../../src/operator/lines/lines.ts';
import { confirmed, linesOf, voided } from '../../support/transactions/e2e-samples.ts';
import { inChunks } from '../../support/transactions/importing.ts';

const MEBIBYTE = 1024 * 1024;
const LARGE_LINES = 3_000;

/** Without their length, which is that of the line here and that of the data from a thread, and with the data as text. */
async function linesIn(parsed: AsyncIterable<readonly NumberedLine<ImportedEvent>[]>) {
  return (await Array.fromAsync(parsed)).flat().map(({ characters: _, ...line }) => {
    return line.ok ? { ...line, content: { ...line.content, data: line.content.data.text } } : line;
  });
}

const linesHere = (chunks: readonly Buffer[]) => linesIn(parsedLines(inChunks(chunks), parseLine));

/** Lines that nearly always begin in one chunk and end in another, some megabytes of them. */
function largeInput(): Buffer[] {
  const events = Array.from({ length: LARGE_LINES }, (_, index) => confirmed(index + 1));
  const bytes = Buffer.from(linesOf(events));
  expect(bytes.length).toBeGreaterThan(2 * MEBIBYTE);
  const count = Math.ceil(bytes.length / 50_001);
  return Array.from({ length: count }, (_, index) => bytes.subarray(index * 50_001, (index + 1) * 50_001));
}

/** As from a file: the event loop turns while a chunk is read. */
async function* asRead<T>(chunks: Iterable<T>): AsyncGenerator<T> {
  for (const chunk of chunks) {
    await nextTurn();
    yield chunk;
  }
}

function* repeated(chunks: readonly Buffer[], times: number): Generator<Buffer> {
  for (let n = 0; n < times; n++) yield* chunks;
}

describe('a thread that parses an import', () => {
  test('returns the lines that this thread would, however they are cut and whatever is in them', async () => {
    const line = fc.oneof(
      fc.constantFrom('', ' ', '{}', 'no json', '{"type":"Guessed","data":1}', JSON.stringify(voided(7))),
      fc.integer({ min: 0, max: 99 }).map((id) => JSON.stringify(confirmed(id, { name: 'Zoë 😀 \u2028' }))),
      fc.constant('x'.repeat(70_000)),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(line, { maxLength: 20 }), fc.array(fc.nat(9_000)), async (lines, cuts) => {
        const bytes = Buffer.concat([Buffer.from(lines.join('\n')), Buffer.from([10, 0xff])]);
        const places = [0, ...cuts.sort((a, b) => a - b), bytes.length];
        const chunks = places.slice(1).map((end, index) => bytes.subarray(places[index], end));
        const fromThread = await linesIn(parsedInThread(lineBlocks(inChunks(chunks))));
        expect(fromThread).toEqual(await linesHere(chunks));
      }),
      { numRuns: 20 },
    );
  });

  test('is waited for with work: what it has not come to is parsed here', async () => {
    const blocks = await Array.fromAsync(lineBlocks(inChunks([...repeated(largeInput(), 3)])));
    const here = new Set<ArrayBufferLike>(blocks.map(({ bytes }) => bytes.buffer));
    const lines = (await Array.fromAsync(parsedInThread(asRead(blocks)))).flat();
    const parsedHere = lines.filter((line) => line.ok && here.has(line.content.data.bytes.buffer));
    expect(lines.map(({ number }) => number)).toEqual(
      Array.from({ length: 3 * LARGE_LINES }, (_, n) => n + 1),
    );
    expect(parsedHere.length).toBeGreaterThan(0);
    expect(parsedHere.length).toBeLessThan(lines.length);
  });

  test('keeps nothing of what it has answered', async () => {
    setFlagsFromString('--expose-gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    const usedBytes = (): number => {
      collectGarbage();
      return process.memoryUsage().heapUsed;
    };
    const chunks = largeInput();
    const before = usedBytes();
    let given = 0;
    let after = Number.POSITIVE_INFINITY;
    for await (const lines of parsedInThread(lineBlocks(asRead(repeated(chunks, 10))))) {
      given += lines.length;
      if (given >= 9.5 * LARGE_LINES && after === Number.POSITIVE_INFINITY) after = usedBytes();
    }
    expect(given).toBe(10 * LARGE_LINES);
    expect((after - before) / MEBIBYTE).toBeLessThan(8);
  });
});

describe('the lines of an import', () => {
  test('of a large one are all there, in their order, whoever parses them', async () => {
    const chunks = [...repeated(largeInput(), 5)];
    expect(await linesIn(parsedImport(asRead(chunks)))).toEqual(await linesHere(chunks));
  });

  test('are read no further once nobody wants them, and the input is closed', async () => {
    let closed = 0;
    const input = async function* (): AsyncGenerator<Buffer> {
      try {
        for (;;) yield* asRead(largeInput());
      } finally {
        closed += 1;
      }
    };
    let count = 0;
    for await (const lines of parsedImport(input())) {
      count += lines.length;
      if (count > 4 * LARGE_LINES) break;
    }
    expect(closed).toBe(1);
  });

  test('of an input that breaks are reported with its own error', async () => {
    const fault = new Error('the disk is broken');
    const input = async function* (): AsyncGenerator<Buffer> {
      yield* asRead(repeated(largeInput(), 5));
      throw fault;
    };
    await expect(Array.fromAsync(parsedImport(input()))).rejects.toBe(fault);
  });
});
