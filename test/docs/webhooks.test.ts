import { createHmac } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { webhookRequest } from '../../src/deliveries/message/envelope.ts';
import { signature } from '../../src/deliveries/message/signature.ts';
import { blocksOf, readDocument, sectionOf } from '../support/documents.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const TEXT = readDocument('docs/webhooks.md');
const BODY = '{"id":"x","data":{"liters":45.20}}';

type IsGenuine = (header: string | undefined, rawBody: Buffer, secret: string) => boolean;

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
  const shown = `POST /fuel-events HTTP/1.1\n${headers.join('')}`.replace(/v1=\w{64}/, 'v1=<64 hex digits>');
  expect(request?.text).toBe(shown);
  expect(body?.text.replaceAll('\n', '')).toBe(sent.body);
});

it('the code of docs/webhooks.md accepts a genuine signature and no other', async () => {
  const file = join(temporaryFolder(), 'verify.mjs');
  writeFileSync(file, blocksOf(TEXT).find(({ language }) => language === 'js')?.text ?? '');
  const { isGenuine } = (await import(pathToFileURL(file).href)) as { isGenuine: IsGenuine };
  const [secret, atMs] = ['s'.repeat(43), Date.now()];
  const header = signature({ secret, body: BODY, atMs });
  expect(isGenuine(header, Buffer.from(BODY), secret)).toBe(true);
  expect(isGenuine(header, Buffer.from(BODY.replace('45.20', '45.2')), secret)).toBe(false);
  expect(isGenuine(header, Buffer.from(BODY), 't'.repeat(43))).toBe(false);
  const old = signature({ secret, body: BODY, atMs: atMs - 301_000 });
  expect(isGenuine(old, Buffer.from(BODY), secret)).toBe(false);
  expect(isGenuine(undefined, Buffer.from(BODY), secret)).toBe(false);
});

it('the sample that docs/webhooks.md gives to try a verification with is right', () => {
  const sample = sectionOf(TEXT, '## Verify the signature').replace(/.*To try yours/s, '');
  const [secret = '', time = '', body, name, v1] = [...sample.matchAll(/`([^`]+)`/g)].map(([, code]) => code);
  expect([time, body, name]).toEqual([expect.stringMatching(/^t=\d+$/), BODY, 'v1']);
  const signed = createHmac('sha256', secret)
    .update(`${time.slice(2)}.${body}`)
    .digest('hex');
  expect(v1).toBe(signed);
});
