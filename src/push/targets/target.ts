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

/** The place that a webhook's URL leads to. */
export interface Target {
  /** The URL in its normal form. */
  readonly url: string;
  /** `https://host:port`. Connections are kept by origin. */
  readonly origin: string;
  /** A name, or an address without brackets. */
  readonly host: string;
  readonly port: number;
  /** Path and query. */
  readonly path: string;
}

type ReadTarget =
  | { readonly ok: true; readonly target: Target }
  | { readonly ok: false /** What the URL must be: `must use port 443`. */; readonly reason: string };

/**
 * Reads a URL and judges its form: `https`, port 443, a host that may be public, and neither user name, password nor
 * fragment. This includes URLs that were set before, since the rules may have changed. `allowPrivate` (staging only) also
 * allows any port, loopback and private addresses. The addresses of a name are judged when a connection is made.
 */
export function readTarget(text: string, allowPrivate: boolean): ReadTarget {
  const url = URL.parse(text);
  if (url === null) return { ok: false, reason: 'must be a URL such as https://example.com/hook' };
  const fault = faultOf(url, allowPrivate);
  if (fault !== undefined) return { ok: false, reason: fault };
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

/** True if a host may be public. The URL parser has converted every form of an IPv4 address (hex, octal, one number). */
function isPublicHost(hostname: string): boolean {
  const host = hostOf(hostname);
  if (isIP(host) !== 0) return isPublicAddress(host);
  return host !== 'localhost' && !host.endsWith('.localhost');
}

/** A URL's host name without the brackets of an IPv6 address or the final dot of a name. */
function hostOf(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
}

/** The first address that the sender must not call. */
export function forbiddenAmong(addresses: readonly string[]): string | undefined {
  return addresses.find((address) => !isPublicAddress(address));
}

interface JudgedTarget {
  /** The URL in its normal form. */
  readonly url: string;
  /** Something that the operator should know. The URL is accepted nevertheless. */
  readonly warning: string | null;
}

/**
 * Judges a URL when it is set: its form, and the addresses that its name resolves to now. A name that does not resolve is
 * accepted with a warning; a name with a forbidden address is refused, unless `allowPrivate` is set. The sender judges
 * again the address that it connects to. Throws `REFUSED`.
 */
export async function judgeTarget(
  text: string,
  { allowPrivate, names }: { readonly allowPrivate: boolean; readonly names: NameLookup },
): Promise<JudgedTarget> {
  const read = readTarget(text, allowPrivate);
  if (!read.ok) throw refused(`it ${read.reason}`);
  const { url, host } = read.target;
  const found = await names.find(host);
  if (!found.ok) {
    return { url, warning: `${host} does not resolve at present: deliveries fail until it does` };
  }
  const forbidden = allowPrivate ? undefined : forbiddenAmong(found.addresses);
  if (forbidden !== undefined) {
    throw refused(`${host} resolves to ${forbidden}, which is not on the public internet`);
  }
  return { url, warning: null };
}

function refused(reason: string): FuelError {
  return new FuelError('REFUSED', `Webhook URL refused: ${reason}`);
}
