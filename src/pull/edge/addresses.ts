import type { IncomingMessage } from 'node:http';
import {
  type IpAddress,
  type IpRange,
  isInRange,
  parseAddress,
  parseRange,
} from '../../base/config/ip-address.ts';

const FORWARDED = /^(?:\[([\da-f:.]+)\]|([\d.]+))(?::(\d{1,5}))?$/i;
const MAX_PORT = 65_535;

/** The parsed allow-lists. They can be cached, since a new allow-list is a new array and no array is changed. */
const parsed = new WeakMap<readonly string[], readonly IpRange[]>();

/** Makes a check for the trusted proxies, given as CIDR ranges or single addresses. Throws for anything else. */
export function trustedProxies(cidrs: readonly string[]): (address: string) => boolean {
  const ranges = rangesOf(cidrs);
  if (ranges.length < cidrs.length) throw new Error(`neither addresses nor CIDR ranges: ${cidrs.join(', ')}`);
  return (address) => cidrs.length > 0 && isAllowed(cidrs, parseAddress(address));
}

/**
 * Returns the address that a request comes from: the socket's peer or, behind trusted proxies, the right-most address
 * in `X-Forwarded-For` that is not one of them, with or without a port. If that can't be read, it calls `onUnreadable`
 * and returns `undefined`.
 */
export function clientAddress(
  request: IncomingMessage,
  trusts: (address: string) => boolean,
  onUnreadable: (text: string) => void = () => undefined,
): IpAddress | undefined {
  // A socket that is already closed has no peer.
  let address = parseAddress(request.socket.remoteAddress);
  if (address === undefined || !trusts(address.toString())) return address;
  const header = request.headers['x-forwarded-for'];
  const hops = header === undefined ? [] : [header].flat().join(',').split(',');
  for (const hop of hops.map((text) => text.trim()).reverse()) {
    address = forwardedAddress(hop);
    if (address === undefined) onUnreadable(hop);
    if (address === undefined || !trusts(address.toString())) return address;
  }
  return address;
}

/** Parses an entry of `X-Forwarded-For`. Some gateways add the client's port and put an IPv6 address in brackets. */
function forwardedAddress(text: string): IpAddress | undefined {
  const [, ipv6, ipv4, port] = FORWARDED.exec(text) ?? [];
  if (Number(port ?? 0) > MAX_PORT || (ipv6 !== undefined && !ipv6.includes(':'))) return undefined;
  return parseAddress(ipv6 ?? ipv4 ?? text);
}

/** A peer and the networks that it is in, by name, for counting connections. */
export interface Peer {
  readonly peer: string;
  readonly networks: readonly string[];
}

/**
 * Returns the peer whose connections are counted together, and the networks in which they are counted too: an IPv4
 * address in its /24, or the /64 of an IPv6 address, since a provider's customer has at least a /64, in its /56 and
 * /48. An IPv4-mapped IPv6 address counts as the IPv4 address. Anything else is one peer without a name.
 */
export function peerOf(address: string | undefined): Peer {
  const parsed = parseAddress(address);
  if (parsed === undefined) return { peer: '', networks: [] };
  if (!('parts' in parsed)) {
    const text = parsed.toString();
    return { peer: text, networks: [`${text.slice(0, text.lastIndexOf('.'))}.0/24`] };
  }
  const [first = 0, second = 0, third = 0, fourth = 0] = parsed.parts;
  const named = (parts: readonly number[], bits: number): string =>
    `${parts.map((part) => part.toString(16)).join(':')}::/${bits}`;
  return {
    peer: named([first, second, third, fourth], 64),
    networks: [named([first, second, third, fourth & 0xff00], 56), named([first, second, third], 48)],
  };
}

/**
 * True if an address is on an allow-list of addresses and CIDR ranges. An entry that is neither admits nobody, and
 * neither does an empty list.
 */
export function isAllowed(allowList: readonly string[], address: IpAddress | undefined): boolean {
  return address !== undefined && rangesOf(allowList).some((range) => isInRange(address, range));
}

function rangesOf(allowList: readonly string[]): readonly IpRange[] {
  const known = parsed.get(allowList);
  if (known !== undefined) return known;
  const ranges = allowList.map(parseRange).filter((range) => range !== undefined);
  parsed.set(allowList, ranges);
  return ranges;
}
