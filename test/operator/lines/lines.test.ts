import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type Line,
  lineBlocks,
  linesIn,
  MAX_LINE_BYTES,
  repeatedMember,
} from '../../../src/operator/lines/lines.ts';
import { inChunks } from '../../support/transactions/importing.ts';

async function* readLines(input: AsyncIterable<Buffer>): AsyncGenerator<Line[]> {
  for await (const block of lineBlocks(input)) yield linesIn(block);
}

/** Without their bytes, which are those of their texts. */
function withoutBytes(lines: readonly Line[]) {
  return lines.map((line) => {
    if ('fault' in line) return line;
    const { bytes, ...rest } = line;
    expect(Buffer.from(bytes).toString()).toBe(line.text);
    return rest;
  });
}

async function read(...chunks: readonly (string | Buffer)[]) {
  return withoutBytes((await Array.fromAsync(readLines(inChunks(chunks)))).flat());
}

const TOO_LONG = `is longer than ${MAX_LINE_BYTES} bytes`;

describe('the lines of an input', () => {
  test('are numbered from 1, and blank ones count though they are left out', async () => {
    expect(await read('one\n\n \t\nfour\n')).toEqual([
      { number: 1, text: 'one' },
      { number: 4, text: 'four' },
    ]);
  });

  test('end with a line feed, with a carriage return too, or with the input', async () => {
    expect(await read('\uFEFFone\r\ntwo')).toEqual([
      { number: 1, text: 'one' },
      { number: 2, text: 'two' },
    ]);
    expect(await read('one\n')).toHaveLength(1);
    expect(await read('')).toEqual([]);
    expect(await read('\n\n')).toEqual([]);
  });

  test('that are not UTF-8 are named, and the next one is read', async () => {
    expect(await read(Buffer.from([0x61, 0xff, 10, 0x62]))).toEqual([
      { number: 1, fault: 'is not UTF-8' },
      { number: 2, text: 'b' },
    ]);
    expect(await read(Buffer.from([0xc3]))).toEqual([{ number: 1, fault: 'is not UTF-8' }]);
  });

  test.each([
    ['gzip', gzipSync('{}\n')],
    ['zstd', zstdCompressSync('{}\n')],
    ['a zip archive', Buffer.from('PK\u0003\u0004')],
    ['xz', Buffer.from('fd377a585a00', 'hex')],
    ['bzip2', Buffer.from('BZh91AY')],
    ['UTF-16', Buffer.from('\ufeff{}\n', 'utf16le')],
    ['UTF-16', Buffer.from('\ufeff{}\n', 'utf16le').swap16()],
    ['UTF-16', Buffer.from('{}\n', 'utf16le')],
    ['UTF-16', Buffer.from('{}\n', 'utf16le').swap16()],
    ['UTF-32', Buffer.from('fffe00007b000000', 'hex')],
    ['UTF-32', Buffer.from('0000007b', 'hex')],
    ['UTF-32', Buffer.from('7b000000', 'hex')],
  ])('are none in an input that is %s: it is refused once, with what to do', async (format, input) => {
    const refusal = {
      code: 'REFUSED',
      message: expect.stringMatching(`^the input is ${format}\\. .+ first \\(`),
    };
    await expect(read(input)).rejects.toMatchObject(refusal);
  });

  test('are refused one by one where the first begins with a stray character', async () => {
    expect(await read('{\u0000}\n{}\n')).toHaveLength(2);
    expect(await read('\u0000{}\n{}\n')).toHaveLength(2);
  });

  test('are the same however the input is cut into chunks', async () => {
    const line = fc.string({ unit: fc.constantFrom('a', 'é', '😀', ' ', '\r'), maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(fc.array(line), fc.array(fc.nat(40)), async (all, cuts) => {
        const bytes = Buffer.from(all.join('\n'));
        const places = [0, ...cuts.sort((a, b) => a - b), bytes.length];
        const chunks = places.slice(1).map((end, index) => bytes.subarray(places[index], end));
        const expected = all
          .map((text, index) => ({ number: index + 1, text: text.trim() }))
          .filter(({ text }) => text !== '');
        expect(await read(...chunks)).toEqual(expected);
      }),
    );
  });

  test('of one chunk are returned together, as soon as they are complete', async () => {
    const seen = await Array.fromAsync(readLines(inChunks(['a\nb\nc', '', 'd', '\ne'])));
    expect(seen.map((lines) => lines.map((line) => ('text' in line ? line.text : line.fault)))).toEqual([
      ['a', 'b'],
      ['cd'],
      ['e'],
    ]);
  });
});

test('a line has at most 64 KiB', () => {
  expect(MAX_LINE_BYTES).toBe(65_536);
});

describe('a line that is too long', () => {
  const longest = 'x'.repeat(MAX_LINE_BYTES);

  test('has one byte more than the longest, in whatever chunks it comes', async () => {
    const [half, rest] = [longest.slice(0, 1_000), longest.slice(1_000)];
    for (const chunks of [[longest], [half, rest], [longest, '\n'], [half, `${rest}\n`]]) {
      expect(await read(...chunks)).toEqual([{ number: 1, text: longest }]);
    }
    for (const chunks of [
      [`${longest}x`],
      [half, `${rest}x`],
      [longest, 'x'],
      [longest, 'x\n'],
      [longest, 'x', 'y'],
    ]) {
      expect(await read(...chunks)).toEqual([{ number: 1, fault: TOO_LONG }]);
    }
  });

  test('does not affect the next one', async () => {
    expect(await read(longest, 'x', 'x\nnext\n', 'last')).toEqual([
      { number: 1, fault: TOO_LONG },
      { number: 2, text: 'next' },
      { number: 3, text: 'last' },
    ]);
  });

  test('of 1 GiB is skipped', async () => {
    const chunk = Buffer.alloc(1024 * 1024, 'x');
    const input = async function* (): AsyncGenerator<Buffer> {
      for (let count = 0; count < 1_024; count++) yield chunk;
      yield Buffer.from('\nnext');
    };
    expect(withoutBytes((await Array.fromAsync(readLines(input()))).flat())).toEqual([
      { number: 1, fault: TOO_LONG },
      { number: 2, text: 'next' },
    ]);
  });

  test('is not kept: its memory is bounded', async () => {
    setFlagsFromString('--expose-gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    const chunks: WeakRef<ArrayBufferLike>[] = [];
    const input = async function* (): AsyncGenerator<Buffer> {
      for (let count = 0; count < 20; count++) {
        const chunk = Buffer.alloc(MAX_LINE_BYTES, 'x');
        chunks.push(new WeakRef(chunk.buffer));
        yield chunk;
      }
      await new Promise((resolve) => setImmediate(resolve)); // a WeakRef holds what it names until the next turn
      collectGarbage();
      expect(chunks.filter((chunk) => chunk.deref() !== undefined).length).toBeLessThan(5);
    };
    expect((await Array.fromAsync(readLines(input()))).flat()).toEqual([{ number: 1, fault: TOO_LONG }]);
  });
});

describe('a member that an object has twice', () => {
  test.each([
    ['{"a":1,"b":2,"a":3}', 'a'],
    ['{"a" : 1, "\\u0061" : 2}', 'a'],
    ['{"a":{"b":1,"c":[{"d":1,"d":1}]}}', 'd'],
    ['{"":1,"":1}', ''],
    ['{"\\"\\\\":1,"\\"\\\\":1}', '"\\'],
    ['[{"a":1},{"__proto__":1,"__proto__":2}]', '__proto__'],
  ])('is named: %s', (json, name) => {
    expect(JSON.parse(json)).toBeDefined();
    expect(repeatedMember(json)).toBe(name);
  });

  test('is none in what was written from values, whatever their texts hold', () => {
    const values = fc.jsonValue({ maxDepth: 5 });
    fc.assert(fc.property(values, (value) => repeatedMember(JSON.stringify(value, null, 1)) === undefined));
    expect(repeatedMember('{"a":"\\"a\\":1,","b":{"a":"}"},"c":["a","a"]}')).toBeUndefined();
  });
});
