import type { IncomingMessage } from 'node:http';
import ipaddr from 'ipaddr.js';
import proxyAddr from 'proxy-addr';

export type IpAddress = ipaddr.IPv4 | ipaddr.IPv6;

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
 * Where a request comes from: the socket's peer or, behind trusted proxies, the right-most address in
 * `X-Forwarded-For` that is not one of them. `undefined` where that is not an address, or the socket is closed.
 */
export function clientAddress(
  request: IncomingMessage,
  trusts: (address: string) => boolean,
): IpAddress | undefined {
  return parseAddress(proxyAddr(request, trusts));
}
