import { FuelError } from '../errors.ts';
import type { NameLookup } from './name-lookup.ts';
import { isPublicAddress } from './public-address.ts';
import { checkWebhookUrl } from './webhook-url.ts';

export interface WebhookTarget {
  /** In its normal form. */
  readonly url: string;
  /** What the operator should know, though it does not stand in the way. */
  readonly warning: string | null;
}

/**
 * Judges where a webhook may go at the moment its URL is set: its form, and what its name resolves to now. A
 * name that does not resolve is taken with a warning; one with a forbidden address among its own is not, unless
 * `allowPrivate`. The sender judges again, on the address that it connects to. Throws `REFUSED`.
 */
export async function judgeTarget(
  text: string,
  { allowPrivate, names }: { readonly allowPrivate: boolean; readonly names: NameLookup },
): Promise<WebhookTarget> {
  const check = checkWebhookUrl(text, { allowPrivate });
  if (!check.ok) throw notPossible(check.reason);
  const host = new URL(check.url).hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  const found = await names.find(host);
  if (!found.ok) {
    return { url: check.url, warning: `${host} does not resolve at present: deliveries fail until it does` };
  }
  const forbidden = found.addresses.find((address) => !isPublicAddress(address));
  if (forbidden !== undefined && !allowPrivate) {
    throw notPossible(`${host} resolves to ${forbidden}, which is not on the public internet`);
  }
  return { url: check.url, warning: null };
}

function notPossible(reason: string): FuelError {
  return new FuelError('REFUSED', `the webhook URL is not possible: ${reason}`);
}
