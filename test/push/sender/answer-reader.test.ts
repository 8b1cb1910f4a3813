import { describe, expect, test } from 'vitest';
import { AnswerReader } from '../../../src/push/sender/answer-reader.ts';

/** Feeds an answer in one piece and byte by byte, which must lead to the same. */
function reading(text: string) {
  const whole = outcomeOf([text]);
  expect(outcomeOf([...text])).toEqual(whole);
  return whole;
}

function outcomeOf(parts: readonly string[]) {
  const reader = new AnswerReader();
  let isComplete = false;
  let refused: string | undefined;
  try {
    // Bytes after the end close the connection, whose listener is gone by then.
    for (const part of parts) {
      if (isComplete) reader.reusable = false;
      else isComplete = reader.read(Buffer.from(part, 'latin1'));
    }
  } catch (error) {
    refused = (error as Error).message;
  }
  const { reusable, endsWithConnection } = reader;
  const answer = reader.answer();
  const { status, body } = answer ?? {};
  return { isComplete, refused, reusable, endsWithConnection, status, body };
}

const OK = 'HTTP/1.1 200 OK\r\n';

describe('an answer is complete, and its connection not reusable', () => {
  test('where its connection ends it', () => {
    for (const headers of ['', 'Transfer-Encoding: gzip\r\n', 'Transfer-Encoding: chunked, gzip\r\n']) {
      const read = reading(`${OK}${headers}\r\nok`);
      expect(read).toMatchObject({
        isComplete: false,
        endsWithConnection: true,
        reusable: false,
        body: 'ok',
      });
    }
    expect(reading(`${OK}Content-Length: 3\r\n\r\nok`)).toMatchObject({ endsWithConnection: false });
    expect(reading(`${OK}X: y\r\n`)).toMatchObject({ endsWithConnection: false, status: 200 });
  });
});

describe('an answer is refused with its reason and its status on record', () => {
  test.each([
    ['Content-Length: 2\r\nContent-Length: 3', '', 'a Content-Length that is not one number: "2, 3"'],
    ['Content-Length: -2', '', 'a Content-Length that is not one number: "-2"'],
    ['Content-Length: 2 2', '', 'a Content-Length that is not one number: "2 2"'],
    ['Content-Length:', '', 'a Content-Length that is not one number: ""'],
    ['no colon', '', 'not a header: "no colon"'],
    [': no name', '', 'not a header: ": no name"'],
    ['a\0b: c', '', 'not a header: "a\\u0000b: c"'],
    ['Transfer-Encoding: chunked', 'zz\r\n', 'not the size of a chunk: "zz"'],
    ['Transfer-Encoding: chunked', '1\r\nab\r\n', 'a chunk is longer than its size: "b"'],
  ])('%s', (headers, body, refused) => {
    expect(reading(`${OK}${headers}\r\n\r\n${body}`)).toMatchObject({ refused, status: 200 });
  });

  test('also where it switches protocols', () => {
    const refused = 'the receiver switched protocols without being asked';
    expect(reading('HTTP/1.1 101 Yes\r\nUpgrade: x\r\n\r\n')).toMatchObject({ refused, status: 101 });
  });
});

describe('an answer that costs too much is read no further, and has its status on record', () => {
  const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`;
  const HINT = 'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n';
  const ANSWER = `${OK}Content-Length: 2\r\n\r\nok`;
  const headers = (count: number) => 'X: y\r\n'.repeat(count);

  test.each([
    ['256 KiB', [`${OK}Content-Length: 262105\r\n\r\n`, 'x'.repeat(262_105)], 'x'.repeat(4_096)],
    ['a header of 4 KiB', [`${OK}X: ${'y'.repeat(4_092)}\r\nContent-Length: 2\r\n\r\nok`], 'ok'],
    ['a thousand chunks', [CHUNKED, '1\r\nx\r\n'.repeat(1_000), '0\r\n\r\n'], 'x'.repeat(1_000)],
    ['a thousand pieces', [`${OK}Content-Length: 999\r\n\r\n`, ...'x'.repeat(999)], 'x'.repeat(999)],
    ['20 informational answers', [HINT.repeat(20) + ANSWER], 'ok'],
  ])('which %s do not', (_, parts, body) => {
    expect(outcomeOf(parts)).toMatchObject({ isComplete: true, refused: undefined, status: 200, body });
  });

  test.each([
    ['bytes', [`${OK}Content-Length: 9999999\r\n\r\n`, 'x'.repeat(262_200)], 'more than 256 KiB'],
    ['headers', [`${OK}${headers(2_100)}`], 'more than 2,100 lines'],
    ['a long header', [`${OK}X: ${'y'.repeat(4_100)}`], 'a line of more than 4 KiB'],
    ['chunks', [CHUNKED, '1\r\nx\r\n'.repeat(43_000), '0\r\n\r\n'], 'more than 2,100 lines'],
    ['a chunk extension', [`${CHUNKED}1;x=`, 'e'.repeat(4_100)], 'a line of more than 4 KiB'],
    ['trailers', [`${CHUNKED}0\r\n${headers(2_100)}`], 'more than 2,100 lines'],
    [
      'pieces of a body',
      [`${OK}Content-Length: 9999\r\n\r\n`, ...'x'.repeat(1_000)],
      'more than 1,000 pieces',
    ],
    ['pieces of a line', [`${CHUNKED}1;x=`, ...'e'.repeat(1_000)], 'more than 1,000 pieces'],
  ])('which these do: %s', (_, parts, refused) => {
    expect(outcomeOf(parts)).toMatchObject({ isComplete: false, refused, status: 200 });
  });

  test('which these do, before a status: informational answers and empty lines', () => {
    expect(reading(HINT.repeat(21) + ANSWER)).toMatchObject({
      refused: 'more than 20 informational answers',
      status: undefined,
    });
    expect(outcomeOf(['\n'.repeat(2_101)])).toMatchObject({
      refused: 'more than 2,100 lines',
      status: undefined,
    });
  });
});

describe('what is kept of an answer', () => {
  /** The answer to an exchange whose bytes arrive a thousand at a time. */
  function kept(headers: string, body: Buffer | string = '') {
    const bytes = Buffer.concat([Buffer.from(`${OK}${headers}\r\n`, 'latin1'), Buffer.from(body)]);
    const reader = new AnswerReader();
    for (let at = 0; at < bytes.length; at += 1_000) reader.read(bytes.subarray(at, at + 1_000));
    return reader.answer();
  }

  test('is the first 4 KiB of its body, without half a character at the end', () => {
    const [long, cut] = [`${'a'.repeat(3_000)}${'b'.repeat(6_000)}`, `${'x'.repeat(4_095)}€`];
    expect(kept('Content-Length: 9000\r\n', long)?.body).toBe(long.slice(0, 4_096));
    expect(kept('Content-Length: 4098\r\n', cut)?.body).toBe('x'.repeat(4_095));
  });

  test('is the size and encoding of a body that is compressed, which is never unpacked', () => {
    const encoded = (encoding: string, body: string) =>
      kept(`Content-Encoding: ${encoding}\r\nContent-Length: ${body.length}\r\n`, body)?.body;
    expect(encoded('br', 'x'.repeat(9_000))).toBe('(9000 bytes of br)');
    expect(encoded('gzip, br', 'x')).toBe('(1 bytes of gzip, br)');
    expect(encoded('Identity', 'as it is')).toBe('as it is');
    expect(encoded('gzip', '')).toBe('');
  });

  test('is the first 8 KiB of its headers, in which a letter beyond ASCII takes two bytes', () => {
    const names = Array.from({ length: 9 }, (_, i) => `x-${i}`);
    const headers = (last: number) =>
      names.map((name, i) => `${name}: ${'y'.repeat((i < 7 ? 1_024 : last) - name.length)}\r\n`).join('');
    const namesKept = (text: string) => Object.keys(kept(`${text}Content-Length: 0\r\n`)?.headers ?? {});
    expect(namesKept(headers(1_024))).toEqual(names.slice(0, 8));
    expect(namesKept(headers(1_025))).toEqual(names.slice(0, 7));
    const beyondAscii = (last: number) => `X-A: ${'\xe9'.repeat(4_090)}\r\nX-B: ${'\xe9'.repeat(last)}\r\n`;
    expect(namesKept(beyondAscii(3))).toEqual(['x-a', 'x-b']);
    expect(namesKept(beyondAscii(4))).toEqual(['x-a']);
  });
});

test.each([
  ['SSH-2.0-OpenSSH_9.6\r\n', /^not HTTP\/1.1: "SSH-2.0-/],
  ['HTTP/2 200\r\n\r\n', /^not HTTP\/1.1: "HTTP\/2 /],
  ['HTTP/1.1 20 OK\r\n', /^not a status line of HTTP\/1.1: "HTTP\/1.1 20 OK"/],
  ['HTTP/1.1 2000 OK\r\n', /^not a status line/],
  ['HTTP/1.1 099 OK\r\n', /^not a status line/],
])('what begins with %j is refused without a status', (text, refused) => {
  const read = outcomeOf([text]);
  expect(read).toMatchObject({ refused: expect.stringMatching(refused), status: undefined });
});
