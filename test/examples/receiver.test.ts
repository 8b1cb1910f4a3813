import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Ledger } from '../../examples/ledger/ledger.ts';
import { createReceiver, type ReceiverOptions } from '../../examples/receiver/receiver.ts';
import { signature, webhookRequest } from '../../src/push/message/envelope.ts';
import { makeCertificate } from '../support/certificate.ts';
import { runExample } from '../support/run-example.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { printedRecord } from '../support/transactions/printed-record.ts';

const SECRET = 's'.repeat(43);

async function startReceiver(overrides: Partial<ReceiverOptions> = {}) {
  const certificate = await makeCertificate();
  const outcomes: string[] = [];
  const ledger = new Ledger(':memory:');
  const receiver = createReceiver({
    secrets: [SECRET],
    ...certificate,
    ledger,
    onEvent: (_, outcome) => outcomes.push(outcome),
    onRefused: (status) => outcomes.push(`${status}`),
    ...overrides,
  });
  await new Promise<void>((resolve) => receiver.server.listen(0, '127.0.0.1', resolve));
  const agent = new Agent({ connect: { ca: certificate.cert } });
  onTestFinished(async () => {
    await agent.destroy();
    receiver.server.close();
  });
  const { port } = receiver.server.address() as AddressInfo;
  return {
    ...receiver,
    ledger,
    records: () => [...ledger.records()].map((text) => JSON.parse(text)),
    outcomes,
    async post(sent: { headers: Readonly<Record<string, string>>; body: string }): Promise<number> {
      const url = `https://127.0.0.1:${port}/hook`;
      const answer = await request(url, { method: 'POST', dispatcher: agent, ...sent });
      await answer.body.dump();
      return answer.statusCode;
    },
  };
}

const DRIVER = { id: 77, name: 'Zoë 🚚', mobile_number: null };

/** Makes a webhook with the service's own code, with which the receiver shares nothing. */
function webhook({ secret = SECRET, atMs = Date.now(), id = 'e1', type = 'transaction.confirmed' } = {}) {
  const recordText = type === 'webhook.test' ? null : printedRecord(501, { driver: DRIVER });
  const envelope = { id, type, createdAtMs: 1_000, recordText };
  return webhookRequest({ url: 'https://unused/', secret, envelope, atMs });
}

/** Makes a genuine request with any body. */
function signed(body: string) {
  const header = signature({ secret: SECRET, body, atMs: Date.now() });
  return { body, headers: { 'X-Service-Signature': header } };
}

describe('the example receiver', () => {
  test('stores a transaction once, however often its delivery comes', async () => {
    const receiver = await startReceiver();
    expect(await receiver.post(webhook())).toBe(204);
    expect(await receiver.post(webhook())).toBe(204);
    expect(receiver.outcomes).toEqual(['stored', 'stored before']);
    expect(receiver.records()).toMatchObject([
      {
        id: 501,
        driver: { name: 'Zoë 🚚' },
        fuel: { liters: '45.20' },
        fees: { total_amount: '100.270000' },
      },
    ]);
  });

  test('stores a transaction that comes under two deliveries, of two keys, as one', async () => {
    const receiver = await startReceiver({ secrets: [SECRET, 'n'.repeat(43)] });
    expect(await receiver.post(webhook())).toBe(204);
    expect(await receiver.post(webhook({ id: 'e2', secret: 'n'.repeat(43) }))).toBe(204);
    expect(receiver.outcomes).toEqual(['stored', 'stored before']);
    expect(receiver.records()).toHaveLength(1);
  });

  test('has stored an event in the file before it answers', async () => {
    const file = join(temporaryFolder(), 'fuel.db');
    const ledger = new Ledger(file);
    onTestFinished(() => ledger.close());
    const receiver = await startReceiver({ ledger });
    expect(await receiver.post(webhook())).toBe(204);
    const reader = new Ledger(file);
    expect(reader.count()).toBe(1);
    reader.close();
  });

  test('answers 503 where it cannot store, so that the event is sent again', async () => {
    const ledger = new Ledger(':memory:');
    ledger.close();
    const receiver = await startReceiver({ ledger });
    expect(await receiver.post(webhook())).toBe(503);
    expect(
      await receiver.post(signed('{"id":"e1","type":"transaction.confirmed","data":{"transaction":{}}}')),
    ).toBe(503);
  });

  test('answers a test event, and a type that it does not know, without storing anything', async () => {
    const receiver = await startReceiver();
    expect(await receiver.post(webhook({ type: 'webhook.test' }))).toBe(204);
    expect(await receiver.post(signed('{"id":"e3","type":"station.opened","data":{"station":1}}'))).toBe(204);
    expect(receiver.records()).toEqual([]);
    expect(receiver.outcomes).toEqual(['ignored', 'ignored']);
  });

  test('refuses what another secret signed, a changed body, and no signature', async () => {
    const receiver = await startReceiver();
    const genuine = webhook();
    expect(await receiver.post(webhook({ secret: 'x'.repeat(43) }))).toBe(401);
    expect(await receiver.post({ ...genuine, body: genuine.body.replace('501', '502') })).toBe(401);
    expect(await receiver.post({ ...genuine, body: genuine.body.replace('45.20', '45.2') })).toBe(401);
    expect(await receiver.post({ ...genuine, body: `${genuine.body} ` })).toBe(401);
    expect(await receiver.post({ body: genuine.body, headers: {} })).toBe(401);
    expect(receiver.records()).toEqual([]);
  });

  test('refuses a signature that is more than five minutes from now, either way', async () => {
    const receiver = await startReceiver();
    const minutes = (n: number): number => Date.now() + n * 60_000;
    expect(await receiver.post(webhook({ atMs: minutes(-5.1) }))).toBe(401);
    expect(await receiver.post(webhook({ atMs: minutes(5.1) }))).toBe(401);
    expect(await receiver.post(webhook({ atMs: minutes(-4.9) }))).toBe(204);
  });

  test('says in its log which of the two it was, and trims the secrets', async () => {
    const reasons: string[] = [];
    const receiver = await startReceiver({
      secrets: [` ${SECRET}\n`, ''],
      onRefused: (_, reason) => reasons.push(reason),
    });
    expect(await receiver.post(webhook({ atMs: Date.now() - 6 * 60_000 }))).toBe(401);
    expect(await receiver.post(webhook({ secret: 'x'.repeat(43) }))).toBe(401);
    expect(reasons).toEqual(['the signature is too old or too new', 'the signature is not genuine']);
    expect(await receiver.post(webhook())).toBe(204);
  });

  test('refuses what an empty secret signed, and does not start without another one', async () => {
    const receiver = await startReceiver({ secrets: [SECRET, '', ' '] });
    expect(await receiver.post(webhook({ secret: '' }))).toBe(401);
    await expect(startReceiver({ secrets: ['', ' '] })).rejects.toThrow('WEBHOOK_SECRET is empty');
  });

  test('refuses a body that is larger than any event', async () => {
    const receiver = await startReceiver();
    expect(await receiver.post(signed('x'.repeat(300 * 1024)))).toBe(413);
  });

  test('fails as many requests as configured, then accepts them', async () => {
    const receiver = await startReceiver({ failFirst: 1 });
    expect(await receiver.post(webhook())).toBe(503);
    expect(await receiver.post(webhook())).toBe(204);
    receiver.failNext(1);
    expect(await receiver.post(webhook())).toBe(503);
    expect(receiver.outcomes).toEqual(['503', 'stored', '503']);
  });

  test.each([
    [{}, 'set WEBHOOK_SECRET, TLS_CERT and TLS_KEY'],
    [{ WEBHOOK_SECRET: ' ,', TLS_CERT: 'x', TLS_KEY: 'x' }, 'WEBHOOK_SECRET is empty'],
    [{ WEBHOOK_SECRET: SECRET, TLS_CERT: '/no/cert.pem', TLS_KEY: 'x' }, 'TLS_CERT: ENOENT'],
  ])('says which setting is wrong, without a stack: %j', (env, message) => {
    const { status, stderr } = runExample('receiver/receiver.ts', env);
    expect(stderr).toContain(`receiver: ${message}`);
    expect([status, stderr.split('\n').length]).toEqual([2, 2]);
  });
});
