import type { MasterKeys } from '../../accounts/master-key.ts';
import { FuelError } from '../../base/errors.ts';
import type { AccountKey } from '../../domain/account.ts';
import type { Ciphertext } from '../../domain/account-events.ts';
import type { Presigner } from '../../pull/images/presign.ts';
import type { ClaimedDelivery } from '../queue/delivery-queue.ts';
import type { SendRequest } from '../sender/sender-port.ts';
import { pushedRecordText, webhookRequest } from './envelope.ts';

/** The signed request of one attempt. Throws where the key's secret can't be decrypted. */
export type RequestFor = (
  delivery: ClaimedDelivery,
  webhook: { readonly url: string; readonly key: AccountKey; readonly atMs: number },
) => SendRequest;

/**
 * Makes the signed request of each attempt: the stored record with fresh image URLs. Throws `SECRET_UNREADABLE` where
 * the webhook's secret can't be decrypted.
 */
export function createRequests(masterKeys: MasterKeys, presigner: Presigner): RequestFor {
  const secrets = new WeakMap<Ciphertext, string>();
  const secretOf = (prefix: string, encrypted: Ciphertext): string => {
    const known = secrets.get(encrypted);
    if (known !== undefined) return known;
    const secret = masterKeys.decryptSecret(prefix, encrypted);
    secrets.set(encrypted, secret);
    return secret;
  };
  return (delivery, { url, key, atMs }) => {
    const { id, type, createdAtMs, record } = delivery;
    if (key.webhookSecret === null)
      throw new FuelError('SECRET_UNREADABLE', `key ${key.prefix} has no secret`);
    return webhookRequest({
      url,
      secret: secretOf(key.prefix, key.webhookSecret),
      envelope: { id, type, createdAtMs, recordText: pushedRecordText(record, presigner, atMs) },
      atMs,
    });
  };
}
