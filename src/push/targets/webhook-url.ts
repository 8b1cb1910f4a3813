import { isIP } from 'node:net';
import { isPublicAddress } from './public-address.ts';

const MAX_LENGTH = 2_048;

export type WebhookUrlCheck =
  | { readonly ok: true /** In its normal form. */; readonly url: string }
  | { readonly ok: false /** What the URL must be. */; readonly reason: string };

/**
 * Judges the form of a webhook URL: `https`, port 443, a host that may be public, and neither user name, password nor
 * fragment. `allowPrivate` (staging only) also allows any port, loopback and private addresses. What a name resolves
 * to is judged when a connection is made.
 */
export function checkWebhookUrl(
  text: string,
  { allowPrivate }: { readonly allowPrivate: boolean },
): WebhookUrlCheck {
  const url = URL.parse(text);
  const fault = url === null ? 'must be a URL such as https://example.com/hook' : faultOf(url, allowPrivate);
  return url !== null && fault === undefined
    ? { ok: true, url: url.href }
    : { ok: false, reason: `the webhook URL ${fault}` };
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
export function hostOf(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
}
