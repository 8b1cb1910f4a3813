import ipaddr from 'ipaddr.js';
import type { IpAddress } from './client-address.ts';

type Range = [IpAddress, number];

const IPV4_BITS = 32;
const IPV6_BITS = 128;
const MAPPED_PREFIX_BITS = 96;

/** A list is replaced, never changed, when the operator sets another one; so what was parsed stays right. */
const parsed = new WeakMap<readonly string[], Range[]>();

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
  if (!entry.includes('/')) {
    if (!ipaddr.isValid(entry)) return undefined;
    const address = ipaddr.process(entry);
    return [address, address.kind() === 'ipv4' ? IPV4_BITS : IPV6_BITS];
  }
  if (!ipaddr.isValidCIDR(entry)) return undefined;
  const [base, bits] = ipaddr.parseCIDR(entry);
  if (base instanceof ipaddr.IPv6 && base.isIPv4MappedAddress() && bits >= MAPPED_PREFIX_BITS) {
    return [base.toIPv4Address(), bits - MAPPED_PREFIX_BITS];
  }
  return [base, bits];
}
