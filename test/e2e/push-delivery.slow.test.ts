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

const UUID_V5 = /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const DAY_MS = 86_400_000;

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
  expect(Math.abs(t * 1_000 - hook.atMs)).toBeLessThan(30_000);
};
const pulled = async ({ key }: Customer, id: number): Promise<string> => {
  const from = new Date(Date.now() - DAY_MS).toISOString();
  const to = new Date(Date.now() + DAY_MS).toISOString();
  const { text } = await push.service.get(`/transactions?from=${from}&to=${to}`, { key });
  return recordText(text, id);
};

beforeAll(async () => {
  push = await PushService.start();
  for (const account of [1, 6]) {
    customers.set(account, await push.customer(account));
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
    expect(Date.parse(expires_at) - hook.atMs).toBeGreaterThan(DAY_MS - 60_000);
    expect(Date.parse(expires_at) - hook.atMs).toBeLessThanOrEqual(DAY_MS);
    expect(new URL(pump).searchParams.get('X-Amz-Expires')).toBe('86400');
    expect(odometer).toBeNull();
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
      expect(waited).toBeLessThan(delay * 1.1 + 10_000);
    }
    const [line] = await push.list('--key', prefix);
    const { attempts, ...shown } = await push.show(line.id);
    expect(shown).toMatchObject({ ...line, state: 'failed' });
    expect(attempts).toHaveLength(3);
    for (const attempt of attempts) {
      expect(attempt).toMatchObject({ status: 503, body: 'down for maintenance' });
      expect(attempt.headers).toMatchObject({ 'x-reason': 'nightly' });
    }
  });
});
