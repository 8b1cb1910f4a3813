import { isIP } from 'node:net';

/**
 * Whether the console may be asked for under this name. A page of another site, whose name is made to lead to this
 * machine, is then of that name: it can't read what only its own name, an address or `localhost` may ask for.
 */
export function isKnownHost(header: string | undefined, hosts: readonly string[]): boolean {
  const [, bracketed, plain = ''] =
    /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+))(?::\d{1,5})?$/.exec(header ?? '') ?? [];
  if (bracketed !== undefined) return isIP(bracketed) === 6;
  const name = plain.toLowerCase().replace(/\.$/, '');
  return name !== '' && (name === 'localhost' || isIP(name) === 4 || hosts.includes(name));
}

/**
 * Whether a browser asks for another site's page, as it says itself. To follow a link from there is no read by that
 * site; to show the answer in a frame would be.
 */
export function isCrossSite(headers: Readonly<Record<string, string | string[] | undefined>>): boolean {
  const site = headers['sec-fetch-site'];
  if (site === undefined || site === 'same-origin' || site === 'none') return false;
  return headers['sec-fetch-mode'] !== 'navigate' || headers['sec-fetch-dest'] !== 'document';
}
