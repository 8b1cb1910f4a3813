import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { world } from '../../../../src/base/world.ts';
import { readId, readTime } from '../../../../src/operator/answers/filters.ts';
import {
  readAllowList,
  readCount,
  readEmails,
  readList,
  readText,
} from '../../../../src/operator/cli/command/options.ts';

/** Returns the value that the reader makes of each text, or `refused` for wrong usage. */
function readings<T>(read: (text: string) => T, texts: readonly string[]): (T | 'refused')[] {
  return texts.map((text) => {
    try {
      return read(text);
    } catch (error) {
      expect(error).toMatchObject({ code: 'USAGE' });
      expect((error as Error).message).toMatch(/\w{3,}/);
      return 'refused';
    }
  });
}

function refuses(read: (text: string) => unknown, texts: readonly string[]): void {
  expect(readings(read, texts)).toEqual(texts.map(() => 'refused'));
}

describe('an option of the command line', () => {
  test('that is an id is a whole number from 0 to 2^53-1, in digits alone', () => {
    expect(readings(readId, ['0', '7', '007', '9007199254740991'])).toEqual([0, 7, 7, 2 ** 53 - 1]);
    const wrong = ['', '-1', '+1', '1.0', '1e3', '0x1', ' 1', '1 ', 'x', '9007199254740992', '7\n'];
    refuses(readId, wrong);
  });

  test('that counts something is at least 1', () => {
    expect(readings(readCount, ['1', '2', '1000'])).toEqual([1, 2, 1000]);
    refuses(readCount, ['0', '-1', '1.5', '']);
  });

  test('that is a time has seconds and an offset, is a day, or says how long ago it was', () => {
    vi.spyOn(world, 'clockMs').mockReturnValue(10 * 86_400_000);
    onTestFinished(() => void vi.restoreAllMocks());
    const texts = ['1970-01-01T00:00:01Z', '1970-01-01T01:00:00+01:00', '1970-01-02'];
    expect(readings(readTime, texts)).toEqual([1_000, 0, 86_400_000]);
    const ago = ['0s', '90s', '30m', '2h', '7d'];
    expect(readings(readTime, ago)).toEqual(
      [0, 90, 1_800, 7_200, 604_800].map((s) => 864_000_000 - s * 1_000),
    );
    const wrong = [
      '',
      'now',
      '1970-02-30',
      '1970-02-30T00:00:00Z',
      '1970-01-01T00:00',
      '-2h',
      '2',
      '2w',
      '1.5h',
    ];
    refuses(readTime, wrong);
  });

  test('that is a name is taken as it is', () => {
    expect(readings(readText, ['North', ' North '])).toEqual(['North', ' North ']);
  });

  test('that is a list is cut at commas, without blanks', () => {
    expect(readList('a, b ,,c,')).toEqual(['a', 'b', 'c']);
    expect(readList('')).toEqual([]);
  });

  test('that lists addresses takes addresses and ranges of either family', () => {
    const good = '203.0.113.7 203.0.113.0/24 0.0.0.0/0 203.0.113.7/32 2001:db8::7 2001:db8::/128 ::/0'.split(
      ' ',
    );
    expect(readAllowList(good.join(', '))).toEqual(good);
    const wrong =
      'localhost 203.0.113.0/33 203.0.113.0/ 203.0.113.0/x 203.0.113.0/-1 203.0.113.0/24/8 203.0.113.0/1e1 ' +
      '203.0.113.0/0024 203.0.113.0/08 203.0.113 203.0.113.7,x 010.0.0.1 2001:db8::/129 fe80::1%eth0 ' +
      '::ffff:127.0.0.1/32';
    refuses(readAllowList, wrong.split(' '));
  });

  test('that lists e-mail addresses takes what has one @ and no blank', () => {
    const taken = ['a@example.com', 'b+c@x.example', "o'brien.@localhost", 'büro@bücher.example'];
    expect(readEmails(taken.join(', '))).toEqual(taken);
    const wrong =
      'a @example.com a@ a@b@c a@example.com,b a@example.com> <a@example.com mailto:a@example.com ' +
      '"a"@example.com a@example.com. a@example..com a\u200bb@example.com a\u0007@example.com';
    refuses(readEmails, [...wrong.split(' '), 'a b@example.com', 'a@exam ple.com', "'a@example.com'"]);
  });
});
