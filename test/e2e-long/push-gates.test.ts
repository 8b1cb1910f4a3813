import { beforeAll, describe, expect, it } from 'vitest';
import { type Customer, PushService } from '../support/deliveries/push-service.ts';
import { answerWith } from '../support/deliveries/webhook-receiver.ts';
import { cancelled, voided } from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

/** Its further attempts never come, so that the test has time to end a delivery before them. */
let push: PushService;
/** Its attempts come again while the test waits, but not before an operator's change. */
let retrying: PushService;
const RETRY_DELAY_MS = 1_500;

beforeAll(async () => {
  [push, retrying] = await Promise.all([
    PushService.start({ FUEL_WEBHOOK_RETRY_DELAYS: '60m,60m' }),
    PushService.start({ FUEL_WEBHOOK_RETRY_DELAYS: `${RETRY_DELAY_MS}ms,${RETRY_DELAY_MS}ms` }),
  ]);
});

/** A customer whose receiver has refused one delivery once; the delivery's next attempt is still to come. */
async function refusedOnce(by: PushService, customer: Customer) {
  by.receiver.answer(customer.path, answerWith(500));
  const [transactionId = 0] = await by.push(customer.account);
  const [hook] = await by.receiver.received(customer.path, 1);
  return { ...customer, transactionId, id: String(hook?.body.id) };
}

const integration = (by: PushService, accountId: number, state: 'on' | 'off') =>
  by.service.operator.change(accountId, {
    type: state === 'on' ? 'EnableIntegration' : 'DisableIntegration',
    accountId,
  });
const accept = (by: PushService, { path }: Customer): void => by.receiver.answer(path, answerWith(200));
const redeliver = (id: string, ...args: readonly string[]) =>
  push.service.fuel(['delivery', 'redeliver', id, ...args]);

describe.concurrent('an attempt that is due', () => {
  it('is held while the integration is off, and continues with its remaining attempts', async () => {
    const customer = await refusedOnce(retrying, await retrying.customer(1));
    await integration(retrying, 1, 'off');
    await retrying.push(1, 2);
    await retrying.settled(1, 'held', 3);
    expect(retrying.receiver.to(customer.path)).toHaveLength(1);
    await integration(retrying, 1, 'on');
    await retrying.receiver.received(customer.path, 4);
    accept(retrying, customer);
    await retrying.settled(1, 'delivered', 3);
    const { attempts } = await retrying.show(customer.id);
    expect(attempts.map(({ number }: { number: number }) => number)).toEqual([1, 2, 3]);
    expect((await retrying.webhook(customer.prefix)).health.failed_in_a_row).toBe(0);
  });

  it('is not made after the moment the profile ends, and is made at the moment one starts', async () => {
    const customer = await retrying.customer(2);
    const endMs = Date.now() + 1_500;
    const startMs = endMs + 2_500;
    const profile = { type: 'SetChargingProfile', accountId: 2 } as const;
    await retrying.service.operator.change(
      2,
      { ...profile, profile: 'basic', fromMs: 0, toMs: endMs },
      { ...profile, profile: 'next', fromMs: startMs, toMs: null },
    );
    await retrying.push(2);
    await retrying.receiver.received(customer.path, 1);
    await until(async () => Date.now() > endMs + 20, 5_000);
    await retrying.push(2, 3);
    await retrying.reached(2, 'held', 3, startMs - Date.now());
    const [early, ...late] = await retrying.receiver.received(customer.path, 4);
    expect(early?.atMs).toBeLessThan(endMs);
    for (const { atMs } of late) {
      expect(atMs).toBeGreaterThanOrEqual(startMs);
      expect(atMs).toBeLessThan(startMs + 2_000);
    }
  });

  it('goes to another URL when that is set, whose set time stays', async () => {
    const before = await retrying.customer(5);
    const { set_at } = await retrying.webhook(before.prefix);
    const customer = await refusedOnce(retrying, before);
    const url = retrying.receiver.url('/moved');
    const key = { accountId: 5, prefix: customer.prefix };
    expect(await retrying.service.operator.setWebhook(key, url)).toMatchObject({
      changed: true,
      webhookSecret: null,
    });
    expect((await retrying.webhook(customer.prefix)).set_at).toBe(set_at);
    const [hook] = await retrying.receiver.received('/moved', 1);
    expect(hook?.body.id).toBe(customer.id);
    expect(retrying.receiver.to(customer.path)).toHaveLength(1);
    await retrying.settled(5, 'delivered');
  });
});

describe('a webhook that is removed', () => {
  it('by switching its key off ends pending deliveries with that reason; switched on again, they can be redelivered', async () => {
    const customer = await refusedOnce(push, await push.customer(3));
    await push.service.done(['key', 'off', customer.prefix, '--wait']);
    await push.settled(3, 'failed');
    expect((await push.show(customer.id)).reason).toMatch(/off/);
    const [unsent] = await push.push(3);
    expect((await redeliver(customer.id)).code).toBe(1);
    await push.service.done(['key', 'on', customer.prefix, '--wait']);
    accept(push, customer);
    expect((await redeliver(customer.id)).code).toBe(0);
    await push.settled(3, 'delivered');
    const sent = push.receiver.to(customer.path);
    expect(sent.map(({ body }) => body.id)).toEqual([customer.id, customer.id]);
    const shown = (await push.service.done(['transaction', 'show', String(unsent), '--json'])).json;
    expect(shown.not_sent).toEqual([{ key: customer.prefix, reason: expect.stringMatching(/off/) }]);
  });

  it('by its removal does so too; set again it keeps its secret, with a new set time', async () => {
    const customer = await refusedOnce(push, await push.customer(4));
    const { set_at } = await push.webhook(customer.prefix);
    await push.service.done(['webhook', 'remove', customer.prefix, '--wait']);
    await push.settled(4, 'failed');
    expect((await push.show(customer.id)).reason).toMatch(/remove|no webhook/);
    expect((await push.webhook(customer.prefix)).state).toBe('none');
    const [between] = await push.push(4);
    const url = push.receiver.url(customer.path);
    const again = (await push.service.done(['webhook', 'set', customer.prefix, url, '--json', '--wait']))
      .json;
    expect(again.webhook_secret).toBeNull();
    expect(Date.parse(again.set_at)).toBeGreaterThan(Date.parse(set_at));
    accept(push, customer);
    expect((await redeliver(customer.id)).code).toBe(0);
    await push.settled(4, 'delivered');
    const ids = push.receiver.to(customer.path).map(({ body }) => body.data.transaction.id);
    expect(ids).not.toContain(between);
  });
});

describe('a transaction that is voided', () => {
  it.each([
    ['voided', 6, voided],
    ['cancelled', 7, cancelled],
  ] as const)('before its delivery is withdrawn for good: %s', async (_, account, takenBack) => {
    const customer = await refusedOnce(push, await push.customer(account));
    await push.record([takenBack(customer.transactionId, { account_id: account })]);
    await push.settled(account, 'withdrawn');
    for (const args of [[], ['--force']]) {
      const { code, stderr } = await redeliver(customer.id, ...args);
      expect([code, stderr]).toEqual([1, expect.stringMatching(/withdrawn|void|cancel/i)]);
    }
    expect((await push.show(customer.id)).state).toBe('withdrawn');
    expect(push.receiver.to(customer.path)).toHaveLength(1);
  });

  it('in the same import is never pushed, and one taken back while held is withdrawn', async () => {
    const customer = await push.customer(8);
    await integration(push, 8, 'off');
    const [held, both] = push.made(8, 2);
    if (held === undefined || both === undefined) throw new Error('none made');
    await push.record([held]);
    await push.settled(8, 'held');
    await push.record([
      both,
      voided(Number(both.data.transaction_id), { account_id: 8 }),
      voided(Number(held.data.transaction_id), { account_id: 8 }),
    ]);
    await push.settled(8, 'withdrawn', 2);
    await integration(push, 8, 'on');
    await push.push(8);
    await push.receiver.received(customer.path, 1);
    expect(push.receiver.to(customer.path)).toHaveLength(1);
  });

  it('after its delivery stays delivered, and is not sent again, also by force', async () => {
    const customer = await push.customer(9);
    const [transactionId = 0] = await push.push(9);
    await push.settled(9, 'delivered');
    await push.record([voided(transactionId, { account_id: 9 })]);
    const [{ id }] = (await push.list('--account', '9')) as [{ id: string }];
    expect((await redeliver(id, '--force')).code).toBe(1);
    expect((await push.show(id)).state).toBe('delivered');
    expect(push.receiver.to(customer.path)).toHaveLength(1);
  });
});
