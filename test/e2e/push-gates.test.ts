import { beforeAll, describe, expect, it } from 'vitest';
import { cancelled, voided } from '../support/e2e-samples.ts';
import { type Customer, PushService } from '../support/push-service.ts';
import { answerWith } from '../support/webhook-receiver.ts';

/** Long enough for an operator's command between two attempts. */
const RETRY_DELAY_MS = 2_000;

let push: PushService;

beforeAll(async () => {
  push = await PushService.start({ FUEL_WEBHOOK_RETRY_DELAYS: `${RETRY_DELAY_MS}ms,${RETRY_DELAY_MS}ms` });
});

/** A customer whose receiver has refused one delivery once; the delivery's next attempt is still to come. */
async function refusedOnce(account: number) {
  const customer = await push.customer(account);
  push.receiver.answer(customer.path, answerWith(500));
  const [transactionId = 0] = await push.push(account);
  const [hook] = await push.receiver.received(customer.path, 1);
  return { ...customer, transactionId, id: String(hook?.body.id) };
}

const integration = (account: number, state: 'on' | 'off') =>
  push.service.done(['account', 'integration', String(account), state, '--wait']);
const profile = (account: number, name: string, from: string, to: string) =>
  push.service.done(['account', 'profile', String(account), '--profile', name, '--from', from, '--to', to]);
const inFuture = (ms: number): string => new Date(Date.now() + ms).toISOString();
const accept = ({ path }: Customer): void => push.receiver.answer(path, answerWith(200));
const redeliver = (id: string, ...args: readonly string[]) =>
  push.service.fuel(['delivery', 'redeliver', id, ...args]);

describe('without access', () => {
  it('deliveries are held while the integration is off, and go on with the attempts they have left', async () => {
    const customer = await refusedOnce(1);
    await integration(1, 'off');
    await push.push(1, 2);
    await push.settled(1, 'held', 3);
    const before = push.receiver.to(customer.path).length;
    expect(before).toBe(1);
    await integration(1, 'on');
    await push.receiver.received(customer.path, 4);
    accept(customer);
    await push.settled(1, 'delivered', 3);
    const { attempts } = await push.show(customer.id);
    expect(attempts.map(({ number }: { number: number }) => number)).toEqual([1, 2, 3]);
    expect((await push.webhook(customer.prefix)).health.failed_in_a_row).toBe(0);
  });

  it('none is attempted after the moment the profile ends, and they go on at the moment one starts', async () => {
    const customer = await push.customer(2);
    const end = inFuture(2_500);
    const start = inFuture(4_500);
    await profile(2, 'basic', '1970-01-01T00:00:00Z', end);
    await profile(2, 'next', start, '2999-01-01T00:00:00Z');
    await push.push(2);
    await push.receiver.received(customer.path, 1);
    await new Promise((resolve) => setTimeout(resolve, Date.parse(end) - Date.now() + 20));
    await push.push(2, 3);
    await push.reached(2, 'held', 3, 1_500);
    const [early, ...late] = await push.receiver.received(customer.path, 4, 6_000);
    expect(early?.atMs).toBeLessThan(Date.parse(end));
    for (const { atMs } of late) {
      expect(atMs).toBeGreaterThanOrEqual(Date.parse(start));
      expect(atMs).toBeLessThan(Date.parse(start) + 600);
    }
  });
});

describe('a webhook that is taken away', () => {
  it('by its key going off ends what was pending with that reason; on again, it can be redelivered', async () => {
    const customer = await refusedOnce(3);
    await push.service.done(['key', 'off', customer.prefix, '--wait']);
    await push.settled(3, 'failed');
    expect((await push.show(customer.id)).reason).toMatch(/off/);
    const [unsent] = await push.push(3);
    expect((await redeliver(customer.id)).code).toBe(1);
    await push.service.done(['key', 'on', customer.prefix, '--wait']);
    accept(customer);
    expect((await redeliver(customer.id)).code).toBe(0);
    await push.settled(3, 'delivered');
    const sent = push.receiver.to(customer.path);
    expect(sent.map(({ body }) => body.id)).toEqual([customer.id, customer.id]);
    const shown = (await push.service.done(['transaction', 'show', String(unsent), '--json'])).json;
    expect(shown.not_sent).toEqual([{ key: customer.prefix, reason: expect.stringMatching(/off/) }]);
  });

  it('by its removal too; set again it keeps its secret, and its set time is new', async () => {
    const customer = await refusedOnce(4);
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
    accept(customer);
    expect((await redeliver(customer.id)).code).toBe(0);
    await push.settled(4, 'delivered');
    const ids = push.receiver.to(customer.path).map(({ body }) => body.data.transaction.id);
    expect(ids).not.toContain(between);
  });

  it('by another URL loses nothing: the attempts that are due go there, and the set time stays', async () => {
    const customer = await refusedOnce(5);
    const { set_at } = await push.webhook(customer.prefix);
    const url = push.receiver.url('/moved');
    const set = (await push.service.done(['webhook', 'set', customer.prefix, url, '--json', '--wait'])).json;
    expect([set.webhook_secret, set.set_at]).toEqual([null, set_at]);
    const [hook] = await push.receiver.received('/moved', 1);
    expect(hook?.body.id).toBe(customer.id);
    expect(push.receiver.to(customer.path)).toHaveLength(1);
    await push.settled(5, 'delivered');
  });
});

describe('a transaction that is taken back', () => {
  it.each([
    ['voided', 6, voided],
    ['cancelled', 7, cancelled],
  ] as const)('before its delivery is withdrawn for good: %s', async (_, account, takenBack) => {
    const customer = await refusedOnce(account);
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
    await integration(8, 'off');
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
    await integration(8, 'on');
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
