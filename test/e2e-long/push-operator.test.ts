import { beforeAll, describe, expect, it } from 'vitest';
import { type Customer, PushService } from '../support/deliveries/push-service.ts';
import {
  answerWith,
  readSignature,
  signatureOf,
  withoutImages,
} from '../support/deliveries/webhook-receiver.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

let push: PushService;
const fuel = (...args: readonly string[]) => push.service.fuel(args);

beforeAll(async () => {
  push = await PushService.start();
});

describe('fuel delivery redeliver', () => {
  it('needs --force for a delivered one, and sends the same id and body again', async () => {
    const { account, path, prefix } = await push.customer(1);
    const [transactionId] = await push.push(account);
    await push.settled(account, 'delivered');
    const [{ id }] = (await push.list('--key', prefix)) as [{ id: string }];
    const refused = await fuel('delivery', 'redeliver', id);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('--force')]);
    expect((await fuel('delivery', 'redeliver', id, '--force')).code).toBe(0);
    const [first, second] = await push.receiver.received(path, 2);
    expect(second?.body.id).toBe(id);
    expect(withoutImages(second?.text ?? '')).toBe(withoutImages(first?.text ?? ''));
    await push.settled(account, 'delivered');
    const { attempts } = await push.show(id);
    expect(attempts.map(({ cycle, number }: { cycle: number; number: number }) => [cycle, number])).toEqual([
      [1, 1],
      [2, 1],
    ]);
    const asked = (
      await push.service.done(['audit', '--account', '1', '--type', 'RedeliveryRequested', '--json'])
    ).lines;
    expect(asked).toHaveLength(1);
    expect(asked[0].data).toMatchObject({ delivery_ids: [id], force: true });
    expect(await push.list('--key', prefix)).toMatchObject([
      { transaction_id: transactionId, state: 'delivered' },
    ]);
  });

  it('of failed ones selects by key and time, and starts a new cycle of three attempts', async () => {
    const { account, path, prefix } = await push.customer(2);
    push.receiver.answer(path, answerWith(500));
    await push.push(account, 2);
    await push.settled(account, 'failed', 2);
    const since = new Date().toISOString();
    const late = await push.push(account, 3);
    await push.settled(account, 'failed', 5);
    const attempted = push.receiver.to(path).length;
    expect((await fuel('delivery', 'redeliver', '--failed', '--key', prefix, '--since', since)).code).toBe(0);
    const again = (await push.receiver.received(path, attempted + 9)).slice(attempted);
    await push.settled(account, 'failed', 5);
    expect(new Set(again.map(({ body }) => body.data.transaction.id))).toEqual(new Set(late));
    expect(again).toHaveLength(9);
    expect((await push.webhook(prefix)).health.failed_in_a_row).toBe(8);
  });

  it('explains its refusals: an unknown id, no id, and --failed without a key', async () => {
    const results = await Promise.all([
      fuel('delivery', 'redeliver', '00000000-0000-5000-8000-000000000000'),
      fuel('delivery', 'redeliver'),
      fuel('delivery', 'redeliver', '--failed'),
      fuel('delivery', 'show', '00000000-0000-5000-8000-000000000000'),
    ]);
    expect(results.map(({ code }) => code)).toEqual([1, 2, 2, 1]);
    for (const { stderr } of results) expect(stderr).not.toBe('');
  });
});

describe('fuel webhook test', () => {
  it('makes one signed attempt without data, shows the answer, and stores no delivery', async () => {
    const { account, path, prefix, secret } = await push.customer(3);
    push.receiver.answer(path, answerWith(202, 'got it', { 'X-Seen': 'yes' }));
    const { code, json } = await fuel('webhook', 'test', prefix, '--json');
    expect(code).toBe(0);
    expect(json).toMatchObject({ status: 202, body: 'got it' });
    expect(json.headers['x-seen']).toBe('yes');
    const [hook] = push.receiver.to(path);
    if (hook === undefined) throw new Error('nothing came');
    expect(hook.headers['x-service-event']).toBe('webhook.test');
    expect(hook.body).toEqual({
      id: hook.headers['x-service-delivery'],
      type: 'webhook.test',
      created_at: expect.stringMatching(/Z$/),
      api_version: '2026-09-01',
      data: {},
    });
    expect(hook.body.id).toMatch(UUID);
    const { t, v1 } = readSignature(hook);
    expect(v1).toBe(signatureOf(secret, t, hook.text));

    push.receiver.answer(path, answerWith(500, 'broken'));
    const failed = await fuel('webhook', 'test', prefix);
    expect([failed.code, failed.stdout]).toEqual([1, expect.stringMatching(/500\s+broken/)]);
    expect(push.receiver.to(path)).toHaveLength(2);
    expect(push.receiver.to(path)[1]?.body.id).not.toBe(hook.body.id);
    expect(await push.list('--key', prefix)).toEqual([]);

    await push.service.done(['account', 'integration', String(account), 'off']);
    expect((await fuel('webhook', 'test', prefix)).code).toBe(1);
    expect(push.receiver.to(path)).toHaveLength(2);
  });
});

describe('fuel delivery list', () => {
  it('is filtered by key, account, state and time, and pages without gap or repetition', async () => {
    const customer: Customer = await push.customer(4);
    const { account, path, prefix } = customer;
    const other = await push.customer(5);
    push.receiver.answer(path, (response, { body }) => {
      answerWith(body.data.transaction.odometer_reading === 0 ? 500 : 200)(response);
    });
    await push.push(account, 2, { odometer_reading: 0 });
    await push.push(other.account, 1);
    await push.enqueued(account, 2);
    const since = new Date().toISOString();
    await push.push(account, 5);
    await push.reached(account, 'delivered', 5);
    await push.reached(account, 'failed', 2);

    const all = await push.list('--account', String(account));
    expect(all).toHaveLength(7);
    expect(await push.list('--key', prefix)).toEqual(all);
    const order = all.map(({ created_at, id }) => `${created_at} ${id}`);
    expect(order).toEqual([...order].sort().reverse());
    for (const line of all) expect(line).not.toHaveProperty('attempts');
    const { attempts: _, ...shown } = await push.show(all[0].id);
    expect(shown).toEqual(all[0]);
    expect(await push.list('--key', prefix, '--state', 'failed')).toEqual(
      all.filter(({ state }) => state === 'failed'),
    );
    expect(await push.list('--key', prefix, '--since', since)).toEqual(all.slice(0, 5));
    expect(await push.list('--key', prefix, '--until', since)).toEqual(all.slice(5));
    const paged: unknown[] = [];
    for (let after: readonly string[] = []; ; ) {
      const page = await push.list('--key', prefix, '--limit', '3', ...after);
      paged.push(...page);
      if (page.length < 3) break;
      after = ['--after', page[2].id];
    }
    expect(paged).toEqual(all);
  });

  it('refuses a limit above 1,000, an unknown state, and a page after an unknown delivery', async () => {
    const results = await Promise.all([
      fuel('delivery', 'list', '--limit', '1001'),
      fuel('delivery', 'list', '--state', 'lost'),
      fuel('delivery', 'list', '--since', 'yesterday'),
      fuel('delivery', 'list', '--after', '00000000-0000-5000-8000-000000000000'),
    ]);
    expect(results.map(({ code }) => code)).toEqual([2, 2, 2, 1]);
  });
});
