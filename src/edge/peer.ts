import ipaddr from 'ipaddr.js';
import { parseAddress } from './client-address.ts';

const NETWORK_PARTS = 4; // of 16 bits each: a /64

/**
 * Whose connections are counted together: an IPv4 address, or the /64 of an IPv6 address, since one customer of a
 * provider has at least that many. An IPv4-mapped IPv6 address is the IPv4 address. `undefined` for anything else.
 */
export function peerOf(address: string | undefined): string | undefined {
  const parsed = parseAddress(address);
  if (!(parsed instanceof ipaddr.IPv6)) return parsed?.toString();
  return `${parsed.parts
    .slice(0, NETWORK_PARTS)
    .map((part) => part.toString(16))
    .join(':')}::/64`;
}
