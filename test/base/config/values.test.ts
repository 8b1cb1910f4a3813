import { describe, expect, test } from 'vitest';
import * as read from '../../../src/base/config/values.ts';

describe('a duration', () => {
  test.each([
    ['0ms', 0],
    ['500ms', 500],
    ['30s', 30_000],
    ['2m', 120_000],
    ['999999999ms', 999_999_999],
  ])('%s is %i ms', (text, ms) => {
    expect(read.duration(text)).toBe(ms);
  });

  test.each(['', '30', 's', '30 s', '30S', '-1s', '1.5s', '1h', '1000000000ms', '30s '])(
    'is not %j',
    (text) => {
      expect(() => read.duration(text)).toThrow('must be a number with a unit');
    },
  );
});

describe('an address', () => {
  test.each([
    ['127.0.0.1:8443', { host: '127.0.0.1', port: 8443 }],
    ['localhost:0', { host: 'localhost', port: 0 }],
    ['[::1]:65535', { host: '::1', port: 65_535 }],
  ])('%s is host and port', (text, expected) => {
    expect(read.address(text)).toEqual(expected);
  });

  test.each(['', ':8443', 'localhost', 'localhost:', 'localhost:65536', 'localhost:-1', '::1:80', '[::1]'])(
    'is not %j',
    (text) => {
      expect(() => read.address(text)).toThrow('must be host:port');
    },
  );
});

test('the name of a host is one of DNS, without a port, and is kept in lower case', () => {
  expect(['Ops.Example.com', 'fuel-ops', 'a_b.c'].map(read.hostName)).toEqual([
    'ops.example.com',
    'fuel-ops',
    'a_b.c',
  ]);
  for (const text of [
    '',
    'a:80',
    'http://a',
    'a..b',
    '.a',
    '-a',
    'a b',
    '*',
    '[::1]',
    'é.com',
    `${'a'.repeat(254)}`,
  ]) {
    expect(() => read.hostName(text)).toThrow('must be names of hosts');
  }
});

test('one of several values is that value alone', () => {
  const reader = read.oneOf('staging', 'production');
  expect(reader('production')).toBe('production');
  for (const text of ['', 'Staging', 'production ', 'prod']) {
    expect(() => reader(text)).toThrow('must be staging or production');
  }
});

test('a boolean is true or false, in these words', () => {
  expect([read.boolean('true'), read.boolean('false')]).toEqual([true, false]);
  for (const text of ['', '1', 'yes', 'TRUE'])
    expect(() => read.boolean(text)).toThrow('must be true or false');
});

test('a connection string starts with one of its schemes, and has something after it', () => {
  const reader = read.startsWith('esdb://', 'esdb+discover://');
  expect(reader('esdb://a:2113,b:2113')).toBe('esdb://a:2113,b:2113');
  expect(reader('esdb+discover://a')).toBe('esdb+discover://a');
  for (const text of ['', 'esdb://', 'mongodb://a', ' esdb://a']) {
    expect(() => reader(text)).toThrow('must be a connection string that starts with esdb://');
  }
});

test('a list is split at commas, white space around its items left out, and one fault is the list’s', () => {
  expect(read.list(read.cidr)('10.0.0.0/8 , ::1,192.0.2.1')).toEqual(['10.0.0.0/8', '::1', '192.0.2.1']);
  expect(() => read.list(read.cidr)('10.0.0.0/8,')).toThrow('must be addresses or CIDR ranges');
});

test.each([
  '10.0.0.0/33',
  '300.0.0.1',
  '10.0.0.0/8/8',
  'proxy',
  '',
  '10.0.0.0/',
  '10.0.0.0/08',
  '10.0.0.0/-1',
  '0.0.0.0/0',
  '::/0',
  '::ffff:0.0.0.0/96',
  '10.1/8',
  '10.1',
  '1',
  '010.0.0.1',
  '0x7f.1',
  '0x7f000001',
  '::ffff:127.0.0.1/32',
  'fe80::1%eth0',
  'fe80::%eth0/64',
  '[::1]',
  '10.0.0.1:443',
  '::1/129',
  ' ::1',
])('a CIDR range is not %j', (text) => {
  expect(() => read.cidr(text)).toThrow('must be addresses or CIDR ranges');
});

describe('a master key', () => {
  const key = Buffer.alloc(32, 0xfb);

  test('is 32 bytes in base64, with or without padding', () => {
    expect(read.masterKey(key.toString('base64'))).toEqual(key);
    expect(read.masterKey(key.toString('base64').replace('=', ''))).toEqual(key);
  });

  test.each([
    ['31 bytes', Buffer.alloc(31, 1).toString('base64')],
    ['33 bytes', Buffer.alloc(33, 1).toString('base64')],
    ['base64url', key.toString('base64url')],
    ['what base64 passes over', `${key.toString('base64')} `],
    ['hex', key.toString('hex')],
    ['nothing', ''],
  ])('is not %s', (_what, text) => {
    expect(() => read.masterKey(text)).toThrow('must be 32 bytes in base64');
  });
});

test('a URL is one of the schemes that are asked for', () => {
  const reader = read.url('smtp:', 'smtps:');
  expect(reader('smtps://user:password@mail.example:465')).toBe('smtps://user:password@mail.example:465');
  for (const text of ['', 'mail.example', 'https://mail.example', 'smtp//x']) {
    expect(() => reader(text)).toThrow('must be a URL that starts with smtp:// or smtps://');
  }
});

test('a whole number is one from 1, in digits alone', () => {
  expect([read.positiveInteger('1'), read.positiveInteger('9007199254740991')]).toEqual([1, 2 ** 53 - 1]);
  for (const text of ['', '0', '-1', '1.0', '1e3', '0x10', ' 1', '9007199254740992']) {
    expect(() => read.positiveInteger(text)).toThrow('must be a whole number from 1');
  }
});

test('an e-mail address has one at sign, and neither spaces nor commas', () => {
  expect(read.email('ops@example.com')).toBe('ops@example.com');
  for (const text of ['', 'ops', '@example.com', 'ops@', 'a@b@c', 'a b@c', 'a@b,c@d']) {
    expect(() => read.email(text)).toThrow('must be an e-mail address');
  }
});

test('a sender is an e-mail address, which may stand in angle brackets after a name', () => {
  for (const text of ['fuel@example.com', 'Fuel <fuel@example.com>', '<fuel@example.com>'])
    expect(read.sender(text)).toBe(text);
  for (const text of ['Fuel', 'fuel@example.com>', 'Fuel <fuel@example.com', 'Fuel fuel@example.com', '<>']) {
    expect(() => read.sender(text)).toThrow('must be an e-mail address, with or without a name');
  }
});

test('a text of several lines has no other control characters than those that end lines or indent', () => {
  expect(read.lines('a\r\n\tb')).toBe('a\r\n\tb');
  expect(() => read.lines('a\u001bb')).toThrow('must not contain the control character U+001B');
});

test('a token has at least 16 characters', () => {
  expect(read.token('0123456789abcdef')).toBe('0123456789abcdef');
  expect(() => read.token('0123456789abcde')).toThrow('at least 16 characters');
});
