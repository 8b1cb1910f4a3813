import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

export type IpAddress = ipaddr.IPv4 | ipaddr.IPv6;
/** The addresses that share this number of leading bits with the address. */
export type IpRange = readonly [IpAddress, number];

const RANGE = /^([^/%]+)(?:\/(0|[1-9]\d{0,2}))?$/;
const ADDRESS_BITS = { ipv4: 32, ipv6: 128 };
const MAPPED_PREFIX_BITS = 96;

/**
 * Parses an address in its usual form: IPv4 as four decimal numbers without leading zeros. An IPv4-mapped IPv6 address
 * becomes the IPv4 address, and a zone is left out. Returns `undefined` for anything else.
 */
export function parseAddress(text: string | undefined): IpAddress | undefined {
  if (text === undefined || isIP(text) === 0) return undefined;
  return ipaddr.process(text.replace(/%.*/, ''));
}

/**
 * Parses an address or CIDR range. A range of IPv4-mapped IPv6 addresses becomes the range of IPv4 addresses. Returns
 * `undefined` for anything else, such as a range that goes beyond the mapped addresses.
 */
export function parseRange(text: string): IpRange | undefined {
  const [, address = '', given] = RANGE.exec(text) ?? [];
  const base = parseAddress(address);
  if (base === undefined) return undefined;
  const max = ADDRESS_BITS[base.kind()];
  const isMapped = base.kind() === 'ipv4' && address.includes(':');
  const bits = given === undefined ? max : Number(given) - (isMapped ? MAPPED_PREFIX_BITS : 0);
  return bits < 0 || bits > max ? undefined : [base, bits];
}

export function isInRange(address: IpAddress, [base, bits]: IpRange): boolean {
  return base.kind() === address.kind() && address.match(base, bits);
}
