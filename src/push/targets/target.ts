import { FuelError } from '../../base/errors.ts';
import { isPublicAddress } from './public-address.ts';
import { checkWebhookUrl, hostOf } from './webhook-url.ts';

export type FoundAddresses =
  | { readonly ok: true; readonly addresses: readonly string[] }
  | { readonly ok: false; readonly detail: string };

export interface NameLookup {
  /** The addresses of a host, which is a name in lower case or an address itself. Never rejects. */
  find(host: string): Promise<FoundAddresses>;
}

/** Where a webhook's URL leads. */
export interface Target {
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
  | { readonly ok: false; readonly reason: string };

/** Reads a URL and checks its form, also of one that was set before: the rules may have changed since. */
export function readTarget(url: string, allowPrivate: boolean): ReadTarget {
  const check = checkWebhookUrl(url, { allowPrivate });
  if (!check.ok) return check;
  const { origin, hostname, port, pathname, search } = new URL(check.url);
  return {
    ok: true,
    target: {
      origin,
      host: hostOf(hostname),
      port: port === '' ? 443 : Number(port),
      path: pathname + search,
    },
  };
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
  const check = checkWebhookUrl(text, { allowPrivate });
  if (!check.ok) throw notPossible(check.reason);
  const { url } = check;
  const host = hostOf(new URL(url).hostname);
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
