import { isPublicAddress } from './public-address.ts';
import { checkWebhookUrl } from './webhook-url.ts';

/** Where a webhook's URL leads. */
export interface Target {
  /** `https://host:port`, which is what kept connections belong to. */
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

/** Reads a URL and judges its form once more: it may have been set under other rules than hold now. */
export function readTarget(url: string, allowPrivate: boolean): ReadTarget {
  const check = checkWebhookUrl(url, { allowPrivate });
  if (!check.ok) return check;
  const { origin, hostname, port, pathname, search } = new URL(check.url);
  return {
    ok: true,
    target: {
      origin,
      host: hostname.replace(/^\[|\]$/g, '').replace(/\.$/, ''),
      port: port === '' ? 443 : Number(port),
      path: pathname + search,
    },
  };
}

/** The first address that the sender must not call. */
export function forbiddenAmong(addresses: readonly string[]): string | undefined {
  return addresses.find((address) => !isPublicAddress(address));
}
