import type { MasterKeys } from '../../accounts/master-key.ts';
import { FuelError } from '../../base/errors.ts';
import type { Ciphertext } from '../../domain/account-events.ts';
import type { Presigner } from '../../pull/images/presign.ts';
import type { AttemptTerms } from '../dispatch/attempts.ts';
import { pushedRecordText, webhookRequest } from './envelope.ts';

/**
 * Makes the signed request of each attempt: the stored record with fresh image URLs. Throws `SECRET_UNREADABLE` where
 * the webhook's secret can't be decrypted.
 */
export function createRequests(masterKeys: MasterKeys, presigner: Presigner): AttemptTerms['requestFor'] {
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
