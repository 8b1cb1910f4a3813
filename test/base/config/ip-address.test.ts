import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isInRange, parseAddress, parseRange } from '../../../src/base/config/ip-address.ts';

test.each([
  ['203.0.113.9', '203.0.113.9'],
  ['::FFFF:203.0.113.9', '203.0.113.9'],
  ['::ffff:cb00:7109', '203.0.113.9'],
  ['2001:0db8:0:0:0:0:0:9', '2001:db8::9'],
  ['fe80::1%br-lan.7', 'fe80::1'],
])('the address %s is %s', (text, address) => {
  expect(parseAddress(text)?.toString()).toBe(address);
});

test.each([
  '',
  '1',
  '10.1',
  '010.0.0.1',
  '0x7f.0.0.1',
  '10.0.0.256',
  ' 10.0.0.1',
  '10.0.0.1\n',
  '10.0.0.1%eth0',
  '::ffff:010.0.0.1',
  '2001:db8::1::',
  '2001:db8:::9',
  '[::1]',
  'g::',
  '١٠.0.0.1',
  '10.0.0.0/8',
])('%j is no address', (text) => {
  expect(parseAddress(text)).toBeUndefined();
});

test.each([
  ['10.0.0.0/8', '10.255.0.1', true],
  ['10.1.2.3/8', '10.255.0.1', true],
  ['0.0.0.0/0', '10.0.0.1', true],
  ['10.0.0.1', '10.0.0.2', false],
  ['::ffff:10.0.0.0/104', '10.255.0.1', true],
  ['::ffff:10.0.0.0/104', '11.0.0.1', false],
  ['::/0', '10.0.0.1', false],
  ['2001:db8::/32', '2001:db8:1::', true],
])('the range %s with %s in it is %s', (text, address, expected) => {
  const range = parseRange(text);
  const parsed = parseAddress(address);
  expect(range !== undefined && parsed !== undefined && isInRange(parsed, range)).toBe(expected);
});

test('whatever text comes is an address or none, a range or none, and never throws', () => {
  const near = fc.string({ unit: fc.constantFrom(...'0129af:./%[]x,'), maxLength: 24 });
  fc.assert(
    fc.property(fc.oneof(near, fc.string(), fc.ipV4Extended(), fc.ipV6()), (text) => {
      if (parseAddress(text) !== undefined && !text.includes('%')) expect(parseRange(text)).toBeDefined();
      else parseRange(text);
    }),
  );
});
