import { expect, it } from 'vitest';
import { webhookRequest } from '../../src/push/message/envelope.ts';
import { blocksOf, readDocument, sectionOf } from '../support/documents.ts';

const TEXT = readDocument('docs/webhooks.md');

it('the request that docs/webhooks.md shows is what is sent', () => {
  const [request, body] = blocksOf(sectionOf(TEXT, '## One request'));
  const member = (name: string) => new RegExp(`"${name}":"([^"]+)"`).exec(body?.text ?? '')?.[1] ?? '';
  const sent = webhookRequest({
    url: 'https://erp.example.com/fuel-events',
    secret: 'x',
    atMs: Number(/t=(\d+)/.exec(request?.text ?? '')?.[1]) * 1000,
    envelope: {
      id: member('id'),
      type: 'transaction.confirmed',
      createdAtMs: Date.parse(member('created_at')),
      recordText: '{"id":501,"status":"CONFIRMED", … }',
    },
  });
  const headers = Object.entries(sent.headers).map(([name, value]) => `${name}: ${value}\n`);
  const shown = `POST /fuel-events HTTP/1.1\n${headers.join('')}`
    .replace(/v1=\w{64}/, 'v1=<64 hex digits>')
    .replace(/v1,\S{44}/, 'v1,<44 characters of base64>');
  expect(request?.text).toBe(shown);
  expect(body?.text.replaceAll('\n', '')).toBe(sent.body);
});
