import { createHmac, hash } from 'node:crypto';
import { recordText } from '../../../projections/record.ts';
import type { MasterKeys } from '../../accounts/master-key.ts';
import { FuelError } from '../../base/errors.ts';
import type { AccountKey } from '../../domain/account.ts';
import type { Ciphertext } from '../../domain/account-events.ts';
import { formatDateTime } from '../../domain/values/date-time.ts';
import type { Presigner } from '../../records/presign.ts';
import type { ClaimedDelivery } from '../queue/delivery.ts';
import type { SendRequest } from '../sender/timed-send.ts';

const API_VERSION = '2026-09-01';
const USER_AGENT = `svc-webhooks/${API_VERSION}`;
const IMAGES_VALID_FOR_SECONDS = 24 * 60 * 60;

export interface Envelope {
  /** The delivery's id. */
  readonly id: string;
  /** `webhook.test`, or the type of a transaction's webhook. */
  readonly type: string;
  /** When the delivery was created, which is the same on every attempt. */
  readonly createdAtMs: number;
  /** The transaction as JSON text; `null` for a `webhook.test`, whose data is empty. */
  readonly recordText: string | null;
}

/** Makes the body of a webhook as JSON text, with its members in the order of the specification. */
export function envelopeBody({ id, type, createdAtMs, recordText: record }: Envelope): string {
  const data = record === null ? '{}' : `{"transaction":${record}}`;
  return (
    `{"id":"${id}","type":"${type}","created_at":"${formatDateTime(createdAtMs)}",` +
    `"api_version":"${API_VERSION}","data":${data}}`
  );
}

/**
 * Makes a delivery's record as JSON text, with image URLs that are valid for 24 hours. It shows the mobile number if the
 * record has it: for keys that may not see it, it was left out when the delivery was created.
 */
export function pushedRecordText(record: string, presigner: Presigner, atMs: number): string {
  const { presign, expiresAtMs } = presigner.at(atMs, IMAGES_VALID_FOR_SECONDS);
  return recordText(record, { mobileNumber: true, presign, expiresAt: formatDateTime(expiresAtMs) });
}

export interface WebhookRequest {
  readonly url: string;
  /** The webhook's secret in plain text. */
  readonly secret: string;
  readonly envelope: Envelope;
  /** The time of the attempt and of its signature. */
  readonly atMs: number;
}

/** Makes the request of an attempt: the envelope with its headers and signature. */
export function webhookRequest({ url, secret, envelope, atMs }: WebhookRequest): SendRequest {
  const body = envelopeBody(envelope);
  return {
    url,
    headers: {
      'Content-Type': 'application/json',
      'User-Agent': USER_AGENT,
      'X-Service-Event': envelope.type,
      'X-Service-Delivery': envelope.id,
      'X-Service-Signature': signature({ secret, body, atMs }),
      ...standardHeaders({ id: envelope.id, secret, body, atMs }),
    },
    body,
  };
}

/**
 * Makes the value of `X-Service-Signature`: `t=<unix seconds>,v1=<hex>`. The HMAC-SHA256 covers `<t>.<body>`. Its key is
 * the text of the secret, which is not decoded.
 */
export function signature({ secret, body, atMs }: { secret: string; body: string; atMs: number }): string {
  const t = Math.floor(atMs / 1000);
  const signed = Buffer.from(`${t}.${body}`); // hashing a string would take 1.5 times as long
  return `t=${t},v1=${createHmac('sha256', secret).update(signed).digest('hex')}`;
}

/** Makes the headers of the Standard Webhooks specification, whose HMAC covers the id too. Its key is the same. */
function standardHeaders({
  id,
  secret,
  body,
  atMs,
}: {
  id: string;
  secret: string;
  body: string;
  atMs: number;
}) {
  const t = Math.floor(atMs / 1000);
  const hmac = createHmac('sha256', secret).update(Buffer.from(`${id}.${t}.${body}`));
  return {
    'webhook-id': id,
    'webhook-timestamp': String(t),
    'webhook-signature': `v1,${hmac.digest('base64')}`,
  };
}

export type RequestFor = (
  delivery: ClaimedDelivery,
  webhook: { readonly url: string; readonly key: AccountKey; readonly atMs: number },
) => SendRequest;

/**
 * Returns a function that makes the signed request of each attempt, from the stored record and new image URLs. It throws
 * `SECRET_UNREADABLE` if the webhook's secret can't be decrypted.
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

/** This must never change: receivers recognize deliveries by the ids that are made from it. */
const DELIVERY_NAMESPACE = '5b0f6c3e-6d0a-4f5e-9c55-0f4d9c1e7a26';

const NAMESPACE_BYTES = Buffer.from(DELIVERY_NAMESPACE.replaceAll('-', ''), 'hex');

/**
 * Makes the id of the delivery that a key is owed for a transaction: UUIDv5 of `<key prefix>/<transaction id>`. A
 * verification makes one for each transaction, and the library would take seven times as long.
 */
export function deliveryId(prefix: string, transactionId: number): string {
  const digest = hash('sha1', Buffer.concat([NAMESPACE_BYTES, Buffer.from(`${prefix}/${transactionId}`)]));
  const variant = ((Number.parseInt(digest.charAt(16), 16) & 0x3) | 0x8).toString(16);
  return (
    `${digest.slice(0, 8)}-${digest.slice(8, 12)}-5${digest.slice(13, 16)}-` +
    `${variant}${digest.slice(17, 20)}-${digest.slice(20, 32)}`
  );
}
