import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** All public unicast addresses of IPv6 are in here; what tunnels or translates to IPv4 is told by its range. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');

/** Metadata services of cloud providers on addresses that are otherwise public. */
const METADATA = new Set(['168.63.129.16']);

/**
 * Whether an IP address, in its plain form, is public unicast: one that the webhook sender may call. Private,
 * loopback, link-local and reserved ones are not, nor IPv6 addresses that stand for an IPv4 one, nor text that
 * is no address.
 */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 0 || METADATA.has(address)) return false;
  const parsed = ipaddr.parse(address);
  if (parsed.range() !== 'unicast') return false;
  return parsed.kind() === 'ipv4' || parsed.match(GLOBAL_UNICAST);
}
