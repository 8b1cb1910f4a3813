import { expect, test } from 'vitest';
import { peerOf } from '../../src/edge/peer.ts';

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
