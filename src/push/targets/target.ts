import { isIP } from 'node:net';
import { FuelError } from '../../base/errors.ts';
import { isPublicAddress } from './public-address.ts';

const MAX_LENGTH = 2_048;

export type FoundAddresses =
  | { readonly ok: true; readonly addresses: readonly string[] }
  | { readonly ok: false; readonly detail: string };

export interface NameLookup {
  /** The addresses of a host, which is a name in lower case or an address itself. Never rejects. */
  find(host: string): Promise<FoundAddresses>;
}

/** Where a webhook's URL leads. */
export interface Target {
  /** In its normal form. */
  readonly url: string;
  /** `https://host:port`, by which connections are kept. */
  readonly origin: string;
  /** A name, or an address without brackets. */
  readonly host: string;
  readonly port: number;
  /** Path and query. */
  readonly path: string;
}

export type ReadTarget =
  | { readonly ok: true; readonly target: Target }
  | { readonly ok: false /** What the URL must be. */; readonly reason: string };

/**
 * Reads a URL and judges its form, also of one that was set before, since the rules may have changed: `https`, port 443, a
 * host that may be public, and neither user name, password nor fragment. `allowPrivate` (staging only) also allows any
 * port, loopback and private addresses. What a name resolves to is judged when a connection is made.
 */
export function readTarget(text: string, allowPrivate: boolean): ReadTarget {
  const url = URL.parse(text);
  const fault = url === null ? 'must be a URL such as https://example.com/hook' : faultOf(url, allowPrivate);
  if (url === null || fault !== undefined) return { ok: false, reason: `the webhook URL ${fault}` };
  const { href, origin, hostname, port, pathname, search } = url;
  const host = hostOf(hostname);
  const target = { url: href, origin, host, port: port === '' ? 443 : Number(port), path: pathname + search };
  return { ok: true, target };
}

function faultOf(url: URL, allowPrivate: boolean): string | undefined {
  if (url.protocol !== 'https:') return 'must start with https://';
  if (url.href.length > MAX_LENGTH) return `must have at most ${MAX_LENGTH} characters`;
  if (url.username !== '' || url.password !== '') return 'must not hold a user name or a password';
  if (url.href.includes('#')) return 'must not have a fragment (#…)';
  if (allowPrivate) return undefined;
  if (url.port !== '') return 'must use port 443';
  return isPublicHost(url.hostname) ? undefined : 'must name a host on the public internet';
}

/** The URL parser has converted every form of an IPv4 address (hex, octal, one number) to the plain one. */
function isPublicHost(hostname: string): boolean {
  const host = hostOf(hostname);
  if (isIP(host) !== 0) return isPublicAddress(host);
  return host !== 'localhost' && !host.endsWith('.localhost');
}

/** A URL's host name without the brackets of an IPv6 address and the final dot of a name. */
function hostOf(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
}

/** The first address that the sender must not call. */
export function forbiddenAmong(addresses: readonly string[]): string | undefined {
  return addresses.find((address) => !isPublicAddress(address));
}

export interface JudgedTarget {
  /** In its normal form. */
  readonly url: string;
  /** What the operator should know; the URL is accepted all the same. */
  readonly warning: string | null;
}

/**
 * Judges where a webhook may go when its URL is set: its form, and what its name resolves to now. A name that does
 * not resolve is accepted with a warning; one with a forbidden address is refused, unless `allowPrivate`. The sender
 * judges again, on the address that it connects to. Throws `REFUSED`.
 */
export async function judgeTarget(
  text: string,
  { allowPrivate, names }: { readonly allowPrivate: boolean; readonly names: NameLookup },
): Promise<JudgedTarget> {
  const read = readTarget(text, allowPrivate);
  if (!read.ok) throw notPossible(read.reason);
  const { url, host } = read.target;
  const found = await names.find(host);
  if (!found.ok) {
    return { url, warning: `${host} does not resolve at present: deliveries fail until it does` };
  }
  const forbidden = allowPrivate ? undefined : forbiddenAmong(found.addresses);
  if (forbidden !== undefined) {
    throw notPossible(`${host} resolves to ${forbidden}, which is not on the public internet`);
  }
  return { url, warning: null };
}

function notPossible(reason: string): FuelError {
  return new FuelError('REFUSED', `the webhook URL is not possible: ${reason}`);
}
