import type { IncomingMessage } from 'node:http';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  clientAddress,
  isAllowed,
  parseAddress,
  peerOf,
  trustedProxies,
} from '../../../src/pull/edge/addresses.ts';

function seen(peer: string | undefined, forwarded: string | undefined, proxies: readonly string[]) {
  const request = {
    socket: { remoteAddress: peer },
    headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
  } as unknown as IncomingMessage;
  return clientAddress(request, trustedProxies(proxies))?.toString();
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

  test('is undefined when a trusted proxy forwards something that is not an address', () => {
    expect(seen('10.0.0.1', 'unknown', ['10.0.0.0/8'])).toBeUndefined();
    expect(seen('10.0.0.1', '1.1.1.1, 198.51.100.1:8080', ['10.0.0.0/8'])).toBeUndefined();
  });

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
  ['203.0.113.7', '203.0.113.7'],
  ['::ffff:203.0.113.7', '203.0.113.7'],
  ['2001:db8:0:1::7', '2001:db8:0:1::/64'],
  ['2001:db8:0:1:ffff:ffff:ffff:ffff', '2001:db8:0:1::/64'],
  ['2001:db8:0:2::7', '2001:db8:0:2::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['', undefined],
  [undefined, undefined],
])('the connections of %s are counted as those of %s', (address, peer) => {
  expect(peerOf(address)).toBe(peer);
});
