import { createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { recordText, withoutMobileNumber } from '../../../projections/record.ts';
import { projectTransaction } from '../../../projections/transactions.ts';
import { standardSecret } from '../../../src/accounts/key-text.ts';
import { envelopeBody, pushedRecordText, webhookRequest } from '../../../src/push/message/envelope.ts';
import { createPresigner } from '../../../src/records/presign.ts';
import { confirmedData } from '../../support/transactions/records.ts';

const envelope = {
  id: '54771e5a-17bf-544a-8a4a-6b7e0160cd50',
  type: 'transaction.confirmed',
  createdAtMs: Date.parse('2026-09-03T08:16:02.345Z'),
  recordText: '{"id":501,"fuel":{"amount":98.50}}',
} as const;

const presigner = createPresigner({
  endpoint: 'https://photos.example',
  region: 'us-east-1',
  bucket: 'fuel',
  accessKeyId: 'A',
  secretAccessKey: 'S',
});

function record(): string {
  const change = projectTransaction('TransactionConfirmed', confirmedData(), 0);
  if (change.kind !== 'show') throw new Error('a confirmed transaction is shown');
  return change.row.record;
}

describe('the body', () => {
  test('has the members of the contract in its order, and the record as it is', () => {
    expect(envelopeBody(envelope)).toBe(
      '{"id":"54771e5a-17bf-544a-8a4a-6b7e0160cd50","type":"transaction.confirmed",' +
        '"created_at":"2026-09-03T08:16:02.345Z","api_version":"2026-09-01",' +
        '"data":{"transaction":{"id":501,"fuel":{"amount":98.50}}}}',
    );
  });

  test('of a test event has empty data', () => {
    const body = envelopeBody({ ...envelope, type: 'webhook.test', recordText: null });
    expect(JSON.parse(body)).toMatchObject({ type: 'webhook.test', data: {} });
    expect(body).toMatch(/"data":\{\}\}$/);
  });
});

describe('the record', () => {
  const atMs = Date.parse('2026-09-03T08:16:02.345Z');

  test('is what the pull channel prints, its image URLs valid for 24 hours', () => {
    const issued = presigner.at(atMs, 86_400);
    expect(pushedRecordText(record(), presigner, atMs)).toBe(
      recordText(record(), {
        mobileNumber: true,
        presign: issued.presign,
        expiresAt: '2026-09-04T08:16:02.000Z',
      }),
    );
    expect(pushedRecordText(record(), presigner, atMs)).toContain('X-Amz-Expires=86400&');
  });

  test('has no mobile number where none was frozen in it', () => {
    const text = pushedRecordText(withoutMobileNumber(record()), presigner, atMs);
    expect(JSON.parse(text).driver).toEqual({ id: 77, name: 'Sam Field' });
  });
});

test('a request has its delivery and event in headers, and a signature of its exact body', () => {
  const secret = 'S'.repeat(43);
  const atMs = Date.parse('2026-09-03T08:16:32.999Z');
  const request = webhookRequest({ url: 'https://example.com/hook', secret, envelope, atMs });
  const t = 1_788_423_392;
  expect(request).toEqual({
    url: 'https://example.com/hook',
    body: envelopeBody(envelope),
    headers: {
      'Content-Type': 'application/json',
      'User-Agent': 'svc-webhooks/2026-09-01',
      'X-Service-Event': 'transaction.confirmed',
      'X-Service-Delivery': envelope.id,
      'X-Service-Signature': `t=${t},v1=${createHmac('sha256', secret).update(`${t}.${request.body}`).digest('hex')}`,
      'webhook-id': envelope.id,
      'webhook-timestamp': `${t}`,
      'webhook-signature': expect.stringMatching(/^v1,[A-Za-z0-9+/]{43}=$/),
    },
  });
});

test('a library for Standard Webhooks verifies a request with the secret in its form, and nothing that was changed', () => {
  const secret = 'S'.repeat(43);
  const library = new Webhook(standardSecret(secret));
  const { body, headers } = webhookRequest({ url: 'https://x/', secret, envelope, atMs: Date.now() });
  expect(library.verify(body, headers)).toMatchObject({ id: envelope.id });
  expect(() => library.verify(body.replace('98.50', '98.51'), headers)).toThrow('No matching signature');
  const otherId = { ...headers, 'webhook-id': 'other' };
  expect(() => library.verify(body, otherId)).toThrow('No matching signature');
});
