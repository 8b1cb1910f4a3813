import type { RenderedRecord } from '../../../projections/transactions.ts';
import { formatDateTime } from '../../domain/values/date-time.ts';
import type { Presigner } from '../../pull/images/presign.ts';
import { recordText } from '../../pull/record/record.ts';
import type { SendRequest } from '../sender/sender-port.ts';
import { signature } from './signature.ts';

const API_VERSION = '2026-09-01';
const USER_AGENT = `svc-webhooks/${API_VERSION}`;
const IMAGES_VALID_FOR_SECONDS = 24 * 60 * 60;

export type WebhookEventType = 'transaction.confirmed' | 'transaction.external' | 'webhook.test';

export interface Envelope {
  /** The delivery's id. */
  readonly id: string;
  readonly type: WebhookEventType;
  /** When the delivery was created: the same on every attempt. */
  readonly createdAtMs: number;
  /** The transaction as JSON text; `null` for `webhook.test`, whose data is empty. */
  readonly recordText: string | null;
}

/** The body of a webhook as JSON text, with the members in the order of the specification. */
export function envelopeBody({ id, type, createdAtMs, recordText: record }: Envelope): string {
  const data = record === null ? '{}' : `{"transaction":${record}}`;
  return (
    `{"id":"${id}","type":"${type}","created_at":"${formatDateTime(createdAtMs)}",` +
    `"api_version":"${API_VERSION}","data":${data}}`
  );
}

/**
 * The record of a delivery as JSON text, with image URLs that are valid for 24 hours from now. The mobile number is
 * shown where the record has one: for a key that may not see it, it was left out when the delivery was created.
 */
export function pushedRecordText(record: RenderedRecord, presigner: Presigner, atMs: number): string {
  const { presign, expiresAtMs } = presigner.at(atMs, IMAGES_VALID_FOR_SECONDS);
  return recordText(record, { mobileNumber: true, presign, expiresAt: formatDateTime(expiresAtMs) });
}

export interface WebhookRequest {
  readonly url: string;
  /** The webhook's secret in plain text. */
  readonly secret: string;
  readonly envelope: Envelope;
  /** When the attempt is made: the time of its signature. */
  readonly atMs: number;
}

/** The request of one attempt: the envelope with its headers and signature. */
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
    },
    body,
  };
}
