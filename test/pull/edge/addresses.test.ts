import type { IncomingMessage } from 'node:http';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseAddress } from '../../../src/base/config/ip-address.ts';
import { clientAddress, isAllowed, peerOf, trustedProxies } from '../../../src/pull/edge/addresses.ts';

function seen(
  peer: string | undefined,
  forwarded: string | undefined,
  proxies: readonly string[],
  onUnreadable?: (text: string) => void,
) {
  const request = {
    socket: { remoteAddress: peer },
    headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
  } as unknown as IncomingMessage;
  return clientAddress(request, trustedProxies(proxies), onUnreadable)?.toString();
}

describe('the client’s address', () => {
  test('is the socket’s peer, whatever X-Forwarded-For says, when no proxy is trusted', () => {
    expect(seen('203.0.113.9', '198.51.100.1', [])).toBe('203.0.113.9');
  });

  test('is not taken from X-Forwarded-For when the peer is not a trusted proxy', () => {
    expect(seen('203.0.113.9', '198.51.100.1', ['10.0.0.0/8'])).toBe('203.0.113.9');
  });

  test('is the right-most address that is not a trusted proxy', () => {
    expect(seen('10.0.0.1', '1.1.1.1, 198.51.100.1, 10.0.0.2', ['10.0.0.0/8'])).toBe('198.51.100.1');
  });

  test('is the peer when a trusted proxy names no client', () => {
    expect(seen('10.0.0.1', undefined, ['10.0.0.0/8'])).toBe('10.0.0.1');
  });

  test('of an IPv4-mapped peer is the IPv4 address, which may be a trusted proxy', () => {
    expect(seen('::ffff:203.0.113.9', undefined, [])).toBe('203.0.113.9');
    expect(seen('::ffff:10.0.0.1', '::ffff:198.51.100.1', ['10.0.0.0/8'])).toBe('198.51.100.1');
  });

  test.each([
    ['203.0.113.9:51234', '203.0.113.9'],
    ['203.0.113.9:51234, 10.0.0.2:443', '203.0.113.9'],
    ['1.1.1.1, 198.51.100.1:8080', '198.51.100.1'],
    ['[2001:db8::9]:4711', '2001:db8::9'],
    ['[2001:db8::9]', '2001:db8::9'],
    ['2001:db8::9', '2001:db8::9'],
    ['2001:DB8::9:4711', '2001:db8::9:4711'],
    ['[::ffff:203.0.113.9]:65535', '203.0.113.9'],
    ['fe80::9%eth0', 'fe80::9'],
    [' \t203.0.113.9\t ', '203.0.113.9'],
    [', 203.0.113.9', '203.0.113.9'],
    ['unknown, 203.0.113.9', '203.0.113.9'],
    ['10.0.0.3, 10.0.0.2', '10.0.0.3'],
  ])('is read from %j as %s', (forwarded, address) => {
    expect(seen('10.0.0.1', forwarded, ['10.0.0.0/8'])).toBe(address);
  });

  test.each([
    'unknown',
    '_hidden',
    '"203.0.113.9"',
    'for=203.0.113.9',
    '203.0.113.9 198.51.100.1',
    'localhost',
    '010.0.0.1',
    '203.0.113.09',
    '203.0.113',
    '3405803785',
    '0xcb.0.113.9',
    '203.0.113.9/32',
    '203.0.113.9:',
    '203.0.113.9:65536',
    '203.0.113.9:x',
    '203.0.113.9:123456',
    '[203.0.113.9]:443',
    '[2001:db8::9',
    '2001:db8::9]',
    '[2001:db8::9]4711',
    '[]',
    '[::1]:',
    '::ffff:203.0.113.9:443',
  ])('is undefined where a trusted proxy forwards %j, which is reported', (forwarded) => {
    const reported: string[] = [];
    const report = (text: string) => void reported.push(text);
    expect(seen('10.0.0.1', `203.0.113.7, ${forwarded}`, ['10.0.0.0/8'], report)).toBeUndefined();
    expect(reported).toEqual([forwarded]);
  });

  test.each(['203.0.113.9, ', '203.0.113.9,,10.0.0.2', ' , ', ''])(
    'is undefined where the entry of a trusted proxy is empty, as in %j',
    (forwarded) => {
      expect(seen('10.0.0.1', forwarded, ['10.0.0.0/8'])).toBeUndefined();
    },
  );

  test('is undefined on a closed socket', () => {
    for (const proxies of [[], ['10.0.0.0/8'], ['10.0.0.0/8', 'fd00::/8']]) {
      expect(seen(undefined, '1.1.1.1', proxies)).toBeUndefined();
    }
  });

  test('never throws, whatever is forwarded', () => {
    fc.assert(
      fc.property(fc.string(), (forwarded) => {
        seen('10.0.0.1', forwarded, ['10.0.0.0/8', 'fd00::/8']);
      }),
    );
  });
});

describe('an allow-list', () => {
  const allows = (list: readonly string[], address: string) => isAllowed(list, parseAddress(address));

  test.each([
    ['203.0.113.9', '203.0.113.9'],
    ['203.0.113.0/24', '203.0.113.255'],
    ['0.0.0.0/0', '8.8.8.8'],
    ['2001:db8::1', '2001:0db8:0:0:0:0:0:1'],
    ['2001:db8::/32', '2001:db8:ffff::1'],
    ['203.0.113.9', '::ffff:203.0.113.9'],
    ['::ffff:203.0.113.9', '203.0.113.9'],
    ['::ffff:203.0.113.0/120', '203.0.113.7'],
    ['::ffff:0.0.0.0/96', '203.0.113.7'],
    ['2001:db8::/120', '2001:db8::ff'],
    ['203.0.113.9/24', '203.0.113.1'],
    ['::ffff:127.0.0.1/128', '127.0.0.1'],
  ])('with %s admits %s', (entry, address) => {
    expect(allows(['192.0.2.1', entry], address)).toBe(true);
  });

  test.each([
    ['203.0.113.9', '203.0.113.8'],
    ['203.0.113.0/24', '203.0.114.0'],
    ['2001:db8::1', '2001:db8::2'],
    ['2001:db8::/32', '2001:db9::1'],
    ['2001:db8::/120', '2001:db8::100'],
    ['::/0', '203.0.113.9'],
    ['0.0.0.0/0', '2001:db8::1'],
    ['not an address', '203.0.113.9'],
    ['203.0.113.9/99', '203.0.113.9'],
    ['::ffff:0.0.0.0/95', '203.0.113.9'],
    ['::ffff:127.0.0.1/32', '127.0.0.1'],
    ['::ffff:127.0.0.1/32', '::5'],
  ])('with %s refuses %s', (entry, address) => {
    expect(allows([entry], address)).toBe(false);
  });

  test('that is empty refuses every address', () => {
    expect(allows([], '203.0.113.9')).toBe(false);
  });

  test('refuses what is not an address', () => {
    expect(allows(['0.0.0.0/0', '::/0'], 'unknown')).toBe(false);
  });
});

test.each([
  ['203.0.113.7', '203.0.113.7', ['203.0.113.0/24']],
  ['::ffff:203.0.113.7', '203.0.113.7', ['203.0.113.0/24']],
  ['2001:db8:0:1::7', '2001:db8:0:1::/64', ['2001:db8:0:0::/56', '2001:db8:0::/48']],
  ['2001:db8:0:1:ffff:ffff:ffff:ffff', '2001:db8:0:1::/64', ['2001:db8:0:0::/56', '2001:db8:0::/48']],
  ['2001:db8:7:12ff::7', '2001:db8:7:12ff::/64', ['2001:db8:7:1200::/56', '2001:db8:7::/48']],
  ['fe80::1%br-lan.7', 'fe80:0:0:0::/64', ['fe80:0:0:0::/56', 'fe80:0:0::/48']],
  ['', '', []],
  [undefined, '', []],
])('the connections of %s are counted as those of %s, and in the networks %j', (address, peer, networks) => {
  expect(peerOf(address)).toEqual({ peer, networks });
});
