import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LineCutter } from '../../../src/lines/lines.ts';
import { parsedLines } from '../../../src/lines/parsed-lines.ts';
import { parseLine } from '../../../src/transactions/import/parse-line.ts';
import { parsedImport, parsedInThread } from '../../../src/transactions/import/parsed-import.ts';
import { confirmed, linesOf, voided } from '../../support/transactions/e2e-samples.ts';
import { inChunks } from '../../support/transactions/importing.ts';

const MEBIBYTE = 1024 * 1024;
const START = new LineCutter().state;

async function linesIn(parsed: AsyncIterable<readonly unknown[]>) {
  const lines = (await Array.fromAsync(parsed)).flat() as Awaited<ReturnType<typeof collected>>;
  return lines.map(({ characters: _, ...line }) => line);
}
const collected = async (input: AsyncIterable<Buffer>) =>
  (await Array.fromAsync(parsedLines(input, parseLine))).flat();

/** Chunks of lines that are never complete in one chunk, some megabytes of them. */
function largeInput(): Buffer[] {
  const bytes = Buffer.from(linesOf(Array.from({ length: 3_000 }, (_, index) => confirmed(index + 1))));
  expect(bytes.length).toBeGreaterThan(2 * MEBIBYTE);
  return Array.from({ length: Math.ceil(bytes.length / 50_001) }, (_, index) =>
    bytes.subarray(index * 50_001, (index + 1) * 50_001),
  );
}

describe('the lines of an import', () => {
  test('are the same from a thread, however they are cut and whatever is in them', async () => {
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
        const inThread = await linesIn(parsedInThread(inChunks(chunks), START));
        expect(inThread).toEqual(await linesIn(parsedLines(inChunks(chunks), parseLine)));
      }),
      { numRuns: 20 },
    );
  });

  test('of a large one are all there, in their order, also that which begins here and ends in the thread', async () => {
    const lines = await linesIn(parsedImport(inChunks(largeInput())));
    expect(lines).toEqual(await linesIn(parsedLines(inChunks(largeInput()), parseLine)));
    expect(lines.map(({ number }) => number)).toEqual(Array.from({ length: 3_000 }, (_, index) => index + 1));
  });

  test('are not kept once they were given', async () => {
    setFlagsFromString('--expose-gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    const chunks = largeInput();
    const usedBytes = (): number => {
      collectGarbage();
      return process.memoryUsage().heapUsed;
    };
    const before = usedBytes();
    let given = 0;
    let after = Number.POSITIVE_INFINITY;
    const tenTimes = inChunks(Array.from({ length: 10 }, () => chunks).flat());
    for await (const lines of parsedInThread(tenTimes, START)) {
      given += lines.length;
      if (given >= 29_000 && after === Number.POSITIVE_INFINITY) after = usedBytes();
    }
    expect(given).toBe(30_000);
    expect((after - before) / MEBIBYTE).toBeLessThan(8);
  });

  test('are read no further once nobody wants them, and the input is closed', async () => {
    let closed = 0;
    const input = async function* (): AsyncGenerator<Buffer> {
      try {
        for (;;) yield* largeInput();
      } finally {
        closed += 1;
      }
    };
    let bytes = 0;
    for await (const lines of parsedImport(input())) {
      bytes += lines.length * 900;
      if (bytes > 3 * MEBIBYTE) break;
    }
    expect(closed).toBe(1);
  });

  test('of an input that breaks are reported with its own error', async () => {
    const fault = new Error('the disk is broken');
    const input = async function* (): AsyncGenerator<Buffer> {
      yield* largeInput();
      throw fault;
    };
    await expect(Array.fromAsync(parsedImport(input()))).rejects.toBe(fault);
  });
});
