import type { AddressInfo } from 'node:net';
import { Agent, request } from 'undici';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createReceiver, type ReceiverOptions } from '../../examples/receiver/receiver.ts';
import { type WebhookEventType, webhookRequest } from '../../src/deliveries/message/envelope.ts';
import { makeCertificate } from '../support/certificate.ts';

const SECRET = 's'.repeat(43);

async function startReceiver(overrides: Partial<ReceiverOptions> = {}) {
  const certificate = await makeCertificate();
  const outcomes: string[] = [];
  const receiver = createReceiver({
    secret: SECRET,
    ...certificate,
    onEvent: (_, outcome) => outcomes.push(outcome),
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
    outcomes,
    async post(sent: { headers: Readonly<Record<string, string>>; body: string }): Promise<number> {
      const url = `https://127.0.0.1:${port}/hook`;
      const answer = await request(url, { method: 'POST', dispatcher: agent, ...sent });
      await answer.body.dump();
      return answer.statusCode;
    },
  };
}

/** What the service sends, made by the service's own code: the receiver shares nothing with it. */
function webhook({
  secret = SECRET,
  atMs = Date.now(),
  type = 'transaction.confirmed' as WebhookEventType,
} = {}) {
  const recordText = type === 'webhook.test' ? null : '{"id":501,"driver":{"name":"Zoë 🚚"}}';
  const envelope = { id: 'e1', type, createdAtMs: 1_000, recordText };
  return webhookRequest({ url: 'https://unused/', secret, envelope, atMs });
}

describe('the example receiver', () => {
  test('stores a transaction by its id, however often it comes', async () => {
    const receiver = await startReceiver();
    expect(await receiver.post(webhook())).toBe(204);
    expect(await receiver.post(webhook())).toBe(204);
    expect([...receiver.transactions]).toEqual([[501, { id: 501, driver: { name: 'Zoë 🚚' } }]]);
    expect(receiver.outcomes).toEqual(['stored', 'stored before']);
  });

  test('answers a test event without storing anything', async () => {
    const receiver = await startReceiver();
    expect(await receiver.post(webhook({ type: 'webhook.test' }))).toBe(204);
    expect(receiver.transactions.size).toBe(0);
    expect(receiver.outcomes).toEqual(['test']);
  });

  test('refuses what another secret signed, a changed body, and no signature', async () => {
    const receiver = await startReceiver();
    const genuine = webhook();
    expect(await receiver.post(webhook({ secret: 'x'.repeat(43) }))).toBe(401);
    expect(await receiver.post({ ...genuine, body: genuine.body.replace('501', '502') })).toBe(401);
    expect(await receiver.post({ ...genuine, body: `${genuine.body} ` })).toBe(401);
    expect(await receiver.post({ body: genuine.body, headers: { 'Content-Type': 'application/json' } })).toBe(
      401,
    );
    expect(receiver.transactions.size).toBe(0);
  });

  test('refuses a signature that is more than five minutes from now, either way', async () => {
    const receiver = await startReceiver();
    const minutes = (n: number): number => Date.now() + n * 60_000;
    expect(await receiver.post(webhook({ atMs: minutes(-5.1) }))).toBe(401);
    expect(await receiver.post(webhook({ atMs: minutes(5.1) }))).toBe(401);
    expect(await receiver.post(webhook({ atMs: minutes(-4.9) }))).toBe(204);
  });

  test('fails as many requests as configured, then accepts them', async () => {
    const receiver = await startReceiver({ failFirst: 1 });
    expect(await receiver.post(webhook())).toBe(503);
    expect(await receiver.post(webhook())).toBe(204);
    receiver.failNext(1);
    expect(await receiver.post(webhook())).toBe(503);
    expect(receiver.outcomes).toEqual(['stored']);
  });
});
