import type { IncomingMessage } from 'node:http';
import ipaddr from 'ipaddr.js';
import proxyAddr from 'proxy-addr';

export type IpAddress = ipaddr.IPv4 | ipaddr.IPv6;

type Range = [IpAddress, number];

const NETWORK_PARTS = 4; // of 16 bits each: a /64
const IPV4_BITS = 32;
const IPV6_BITS = 128;
const MAPPED_PREFIX_BITS = 96;

/** Safe to cache: a new allow-list is a new array, no array is changed. */
const parsed = new WeakMap<readonly string[], Range[]>();

/** Reads an address; an IPv4-mapped IPv6 address is the IPv4 address. `undefined` for anything else. */
export function parseAddress(text: string | undefined): IpAddress | undefined {
  return text !== undefined && ipaddr.isValid(text) ? ipaddr.process(text) : undefined;
}

/** Whether an address is one of the trusted proxies. CIDRs or single addresses; throws on what is neither. */
export function trustedProxies(cidrs: readonly string[]): (address: string) => boolean {
  const trusts = proxyAddr.compile([...cidrs]);
  return (address) => trusts(address, 0);
}

/**
 * Where a request comes from: the socket's peer or, behind trusted proxies, the right-most address in `X-Forwarded-For`
 * that is not one of them. `undefined` if that is not an address.
 */
export function clientAddress(
  request: IncomingMessage,
  trusts: (address: string) => boolean,
): IpAddress | undefined {
  // A socket that is already closed has no peer.
  if (request.socket.remoteAddress === undefined) return undefined;
  return parseAddress(proxyAddr(request, trusts));
}

/**
 * Names the peer whose connections are counted together: an IPv4 address, or the /64 of an IPv6 address, since a
 * provider's customer has at least a /64. An IPv4-mapped IPv6 address is the IPv4 address. `undefined` for anything else.
 */
export function peerOf(address: string | undefined): string | undefined {
  const parsed = parseAddress(address);
  if (!(parsed instanceof ipaddr.IPv6)) return parsed?.toString();
  return `${parsed.parts
    .slice(0, NETWORK_PARTS)
    .map((part) => part.toString(16))
    .join(':')}::/64`;
}

/**
 * Whether an address is on an allow-list of addresses and CIDR ranges. An entry that is neither admits nobody,
 * nor does an empty list.
 */
export function isAllowed(allowList: readonly string[], address: IpAddress | undefined): boolean {
  if (address === undefined) return false;
  return rangesOf(allowList).some(
    ([base, bits]) => base.kind() === address.kind() && address.match(base, bits),
  );
}

function rangesOf(allowList: readonly string[]): Range[] {
  const known = parsed.get(allowList);
  if (known !== undefined) return known;
  const ranges = allowList.map(parseRange).filter((range) => range !== undefined);
  parsed.set(allowList, ranges);
  return ranges;
}

function parseRange(entry: string): Range | undefined {
  const single = entry.includes(':') ? IPV6_BITS : IPV4_BITS;
  const cidr = entry.includes('/') ? entry : `${entry}/${single}`;
  if (!ipaddr.isValidCIDR(cidr)) return undefined;
  const [base, bits] = ipaddr.parseCIDR(cidr);
  if (base instanceof ipaddr.IPv6 && base.isIPv4MappedAddress() && bits >= MAPPED_PREFIX_BITS) {
    return [base.toIPv4Address(), bits - MAPPED_PREFIX_BITS];
  }
  return [base, bits];
}
