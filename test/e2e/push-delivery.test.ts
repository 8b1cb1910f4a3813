import { createHash } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  type Customer,
  PushService,
  RETRY_DELAYS_MS,
  recordText,
} from '../support/deliveries/push-service.ts';
import {
  answerWith,
  type Hook,
  readSignature,
  signatureOf,
  withoutImages,
} from '../support/deliveries/webhook-receiver.ts';
import { external } from '../support/transactions/e2e-samples.ts';
import { installed, judgement } from '../support/verifiers.ts';
import { until } from '../support/waiting.ts';

const UUID_V5 = /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
/** Receivers know deliveries by the ids made in it: a change would send everything under a second id. */
const NAMESPACE = '5b0f6c3e-6d0a-4f5e-9c55-0f4d9c1e7a26';
const DAY_MS = 86_400_000;
const namespaceBytes = (uuid: string): Buffer => Buffer.from(uuid.replaceAll('-', ''), 'hex');

let push: PushService;
const customers = new Map<number, Customer>();
const customer = (account: number): Customer => {
  const found = customers.get(account);
  if (found === undefined) throw new Error(`no customer ${account}`);
  return found;
};
const verify = (hook: Hook, { secret }: Customer): void => {
  const { t, v1 } = readSignature(hook);
  expect(v1).toBe(signatureOf(secret, t, hook.text));
  expect(Math.abs(t * 1_000 - hook.atMs)).toBeLessThan(3_000);
};
const pulled = async ({ key }: Customer, id: number): Promise<string> => {
  const from = new Date(Date.now() - DAY_MS).toISOString();
  const to = new Date(Date.now() + DAY_MS).toISOString();
  const { text } = await push.service.get(`/transactions?from=${from}&to=${to}`, { key });
  return recordText(text, id);
};

beforeAll(async () => {
  push = await PushService.start();
  for (const account of [1, 2, 3, 4, 5, 6]) {
    customers.set(account, await push.customer(account, { driverMobile: account === 2 }));
  }
});

describe('a delivery', () => {
  it('is one signed POST whose body is the envelope and whose headers repeat what it says', async () => {
    const { path, prefix } = customer(1);
    const before = Date.now();
    const [id = 0] = await push.push(1);
    const [hook] = await push.receiver.received(path, 1);
    if (hook === undefined) throw new Error('nothing came');
    expect(hook.method).toBe('POST');
    expect(hook.headers['content-type']).toBe('application/json');
    expect(hook.headers['user-agent']).toBe('svc-webhooks/2026-09-01');
    expect(hook.headers['x-service-event']).toBe('transaction.confirmed');
    expect(hook.headers['x-service-delivery']).toBe(hook.body.id);
    expect(Object.keys(hook.body)).toEqual(['id', 'type', 'created_at', 'api_version', 'data']);
    expect(hook.body).toMatchObject({ type: 'transaction.confirmed', api_version: '2026-09-01' });
    expect(hook.body.id).toMatch(UUID_V5);
    expect(hook.body.created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(Date.parse(hook.body.created_at)).toBeGreaterThanOrEqual(before);
    expect(Object.keys(hook.body.data)).toEqual(['transaction']);
    verify(hook, customer(1));
    const [line] = await push.list('--key', prefix);
    expect(line).toMatchObject({ id: hook.body.id, transaction_id: id, created_at: hook.body.created_at });
  });

  it('is genuine by the TypeScript and the Python that the guide publishes', async () => {
    const { path, secret } = customer(1);
    const [hook] = await push.receiver.received(path, 1);
    const header = String(hook?.headers['x-service-signature']);
    const body = hook?.text ?? '';
    for (const file of installed(['verify.ts', 'verify.py'])) {
      expect(judgement(file, { secret, header, body })).toBe('genuine');
      expect(judgement(file, { secret: 'x'.repeat(43), header, body })).toBe('not genuine');
    }
  });

  it('is counted in the metrics of its process within seconds', async () => {
    const counted = /^fuel_delivery_attempts_total\{outcome="delivered",kind=""\} [1-9]/m;
    await until(async () => {
      const { text } = await push.service.ops('/metrics');
      return counted.test(text) && /^fuel_delivery_attempt_duration_seconds_count [1-9]/m.test(text);
    }, 5_000);
  });

  it('prints the exact text of the pull channel except the image URLs, which are valid for 24 hours', async () => {
    const { path } = customer(1);
    const [id = 0] = await push.push(1, 1, {
      driver: { id: 9, name: 'Zoë “Ω” \\ 𝄞', mobile_number: '+1555' },
    });
    const hook = (await push.receiver.received(path, 2)).find(({ body }) => body.data.transaction.id === id);
    if (hook === undefined) throw new Error('nothing came');
    const record = recordText(hook.text, id);
    expect(withoutImages(record)).toBe(withoutImages(await pulled(customer(1), id)));
    expect(record).not.toContain('mobile_number');
    const { pump, odometer, expires_at } = hook.body.data.transaction.images;
    expect(Date.parse(expires_at) - hook.atMs).toBeGreaterThan(DAY_MS - 5_000);
    expect(Date.parse(expires_at) - hook.atMs).toBeLessThanOrEqual(DAY_MS);
    expect(new URL(pump).searchParams.get('X-Amz-Expires')).toBe('86400');
    expect(odometer).toBeNull();
  });

  it("has the driver's number for a key that may see it, as the key stood when the event was recorded", async () => {
    const { path, prefix } = customer(2);
    push.receiver.answer(path, (response) => {
      response.writeHead(push.receiver.to(path).length < 2 ? 500 : 200).end();
    });
    const [id = 0] = await push.push(2);
    await push.receiver.received(path, 1);
    await push.service.done(['key', 'driver-mobile', prefix, 'off', '--wait']);
    const [, retry] = await push.receiver.received(path, 2);
    expect(retry?.body.data.transaction).toMatchObject({ id, driver: { mobile_number: '+15550100' } });
    expect(await pulled(customer(2), id)).not.toContain('mobile_number');
  });

  it('of an external transaction says so and has neither a station id nor a provider', async () => {
    const { path } = customer(3);
    const now = new Date().toISOString();
    await push.record([external(90_001, { account_id: 3, created_at: now })]);
    const [hook] = await push.receiver.received(path, 1);
    expect(hook?.headers['x-service-event']).toBe('transaction.external');
    expect(hook?.body).toMatchObject({ type: 'transaction.external' });
    const { status, station } = hook?.body.data.transaction ?? {};
    expect([status, station]).toEqual([
      'EXTERNAL',
      { id: null, name: 'Village Fuel', provider: null, is_external: true },
    ]);
  });

  it('is made for no transaction that was created before the webhook URL was set', async () => {
    const { path, prefix } = customer(3);
    const { set_at } = await push.webhook(prefix);
    const at = Date.parse(set_at);
    const [early = 0] = await push.push(3, 1, { created_at: new Date(at - 1).toISOString() });
    const [equal = 0] = await push.push(3, 1, { created_at: set_at });
    await push.settled(3, 'delivered', 2);
    const ids = push.receiver.to(path).map(({ body }) => body.data.transaction.id);
    expect(ids).toContain(equal);
    expect(ids).not.toContain(early);
    const shown = (await push.service.done(['transaction', 'show', String(early), '--json'])).json;
    expect(shown).toMatchObject({ visible: true, deliveries: [], not_sent: [{ key: prefix }] });
    expect(shown.not_sent[0].reason).toMatch(/before/);
  });

  it('goes to each key that has a webhook, with its own id and signature, and to no other', async () => {
    const first = customer(4);
    const url = push.receiver.url('/hook/4b');
    const second = (await push.service.done(['key', 'issue', '4', '--webhook-url', url, '--json'])).json;
    const without = (await push.service.done(['key', 'issue', '4', '--json'])).json;
    const [id = 0] = await push.push(4);
    const [a] = await push.receiver.received(first.path, 1);
    const [b] = await push.receiver.received('/hook/4b', 1);
    if (a === undefined || b === undefined) throw new Error('nothing came');
    verify(a, first);
    verify(b, { ...first, secret: second.webhook_secret });
    expect(a.body.id).not.toBe(b.body.id);
    expect(recordText(a.text, id).replace(/"images":.*/, '')).toBe(
      recordText(b.text, id).replace(/"images":.*/, ''),
    );
    await push.settled(4, 'delivered', 2);
    const { deliveries, not_sent } = (await push.service.done(['transaction', 'show', String(id), '--json']))
      .json;
    expect(deliveries.map((delivery: { key: string }) => delivery.key).sort()).toEqual(
      [first.prefix, second.prefix].sort(),
    );
    expect(not_sent).toEqual([{ key: without.prefix, reason: expect.any(String) }]);
  });

  it('keeps its id when the same transaction is recorded again, and is not made twice', async () => {
    const { path } = customer(5);
    const events = push.made(5, 3);
    await push.record(events);
    await push.record(events);
    await push.settled(5, 'delivered', 3);
    await push.service.restart();
    await push.push(5); // what a replay would send again comes before it
    await push.settled(5, 'delivered', 4);
    expect(push.receiver.to(path)).toHaveLength(4);
  });

  it("has an id that follows from the key's prefix and the transaction alone", async () => {
    const { path, prefix } = customer(5);
    for (const { body } of push.receiver.to(path)) {
      expect(body.id).toBe(uuidV5(NAMESPACE, `${prefix}/${body.data.transaction.id}`));
    }
  });

  it('is attempted three times in all, about as configured, identical except images and signature', async () => {
    const { path, prefix } = customer(6);
    push.receiver.answer(path, answerWith(503, 'down for maintenance', { 'X-Reason': 'nightly' }));
    await push.push(6);
    await push.settled(6, 'failed');
    const hooks = push.receiver.to(path);
    expect(hooks).toHaveLength(3);
    expect(new Set(hooks.map(({ headers }) => headers['x-service-delivery'])).size).toBe(1);
    expect(new Set(hooks.map(({ text }) => withoutImages(text))).size).toBe(1);
    for (const hook of hooks) verify(hook, customer(6));
    for (const [index, delay] of RETRY_DELAYS_MS.entries()) {
      const waited = (hooks[index + 1]?.atMs ?? 0) - (hooks[index]?.atMs ?? 0);
      expect(waited).toBeGreaterThanOrEqual(delay * 0.9 - 10);
      expect(waited).toBeLessThan(delay * 1.1 + 1_000);
    }
    const [line] = await push.list('--key', prefix);
    const { attempts, ...shown } = await push.show(line.id);
    expect(shown).toMatchObject({ ...line, state: 'failed' });
    expect(attempts).toHaveLength(3);
    for (const attempt of attempts) {
      expect(attempt).toMatchObject({ status: 503, body: 'down for maintenance' });
      expect(attempt.headers).toMatchObject({ 'x-reason': 'nightly' });
    }
    expect((await push.webhook(prefix)).state).toBe('active');
  });
});

function uuidV5(namespace: string, name: string): string {
  const hash = createHash('sha1').update(namespaceBytes(namespace)).update(name).digest().subarray(0, 16);
  hash[6] = ((hash[6] ?? 0) & 0x0f) | 0x50;
  hash[8] = ((hash[8] ?? 0) & 0x3f) | 0x80;
  const hex = hash.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
