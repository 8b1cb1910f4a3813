import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** All public unicast addresses of IPv6 are in this range. `range()` recognizes those that tunnel or translate to IPv4. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');

/** The upper half of the interface id in an ISATAP address. The lower half is the IPv4 address to which packets are sent. */
const ISATAP = [0x0000_5efe, 0x0200_5efe];

/** Metadata services of cloud providers on addresses that are otherwise public. */
const METADATA = new Set(['168.63.129.16']);

/**
 * True if the webhook sender may call an IP address, given in its plain form: it is public unicast. Private,
 * loopback, link-local and reserved addresses are not, nor are IPv6 addresses that stand for an IPv4 address. An ISATAP
 * address leads to the IPv4 address in it, so both must be public.
 */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 0 || METADATA.has(address)) return false;
  const parsed = ipaddr.parse(address);
  if (parsed.range() !== 'unicast') return false;
  if (parsed instanceof ipaddr.IPv4) return true;
  if (!parsed.match(GLOBAL_UNICAST)) return false;
  const within = isatapAddress(parsed);
  return within === undefined || isPublicAddress(within);
}

function isatapAddress({ parts }: ipaddr.IPv6): string | undefined {
  const [, , , , high = 0, low = 0, ...bytes] = parts;
  if (!ISATAP.includes(high * 0x1_0000 + low)) return undefined;
  return bytes.flatMap((part) => [part >> 8, part & 0xff]).join('.');
}
