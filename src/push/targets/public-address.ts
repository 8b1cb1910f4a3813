import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** All public unicast addresses of IPv6; `range()` names those in it that tunnel or translate to IPv4. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');

/** The upper half of an ISATAP address's interface id, before the IPv4 address that its packets go to. */
const ISATAP = [0x0000_5efe, 0x0200_5efe];

/** Metadata services of cloud providers on addresses that are otherwise public. */
const METADATA = new Set(['168.63.129.16']);

/**
 * Whether an IP address, in its plain form, is public unicast: one that the webhook sender may call. Private,
 * loopback, link-local and reserved ones are not, nor IPv6 addresses that stand for an IPv4 one, nor text that
 * is no address. An ISATAP address leads to the IPv4 address in it, so it is public where both are.
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
