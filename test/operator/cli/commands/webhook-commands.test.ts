import { describe, expect, test } from 'vitest';
import type { DeliveryQueue } from '../../../../src/push/queue/delivery-queue.ts';
import { keyIssued, opened, PREFIX, webhookSet } from '../../../support/accounts/account-samples.ts';
import { claimOptions, failed, newDelivery } from '../../../support/deliveries/deliveries.ts';
import { commandLine } from '../../../support/service/command-line.ts';

const other = 'klmnopqrst';

async function failDeliveries(queue: DeliveryQueue, count: number): Promise<void> {
  const deliveries = Array.from({ length: count }, (_, index) => newDelivery(index, { prefix: PREFIX }));
  const claimed = await queue.enqueue(deliveries, claimOptions(1_000));
  await queue.report(claimed.map((claim) => failed(claim, 2_000)));
}

describe('fuel webhook', () => {
  test('shows a webhook that is on, switched off, and none', async () => {
    const { done, account } = commandLine();
    await account(opened(), keyIssued(), keyIssued({ prefix: other }), webhookSet());
    const health = { failed_in_a_row: 0, failing_since: null, last_answers: [] };
    const pace = { under_way: 0, answer_ms: null, waiting: 0, asked_to_wait_until: null };
    const url = 'https://example.com/hook';
    const set_at = '2026-09-01T00:00:00.000Z';
    const nothing = { reason: null, since: null, rate_per_second: null, health };
    const on = { prefix: PREFIX, account: 7, state: 'active', url, set_at, ...nothing };
    expect(await done('webhook', 'show', PREFIX)).toEqual({ ...on, pace });
    const none = { prefix: other, account: 7, state: 'none', url: null, set_at: null, ...nothing };
    expect(await done('webhook', 'show', other)).toEqual({ ...none, pace });
    const off = await done('webhook', 'disable', PREFIX);
    const reason = 'switched off by the operator';
    expect(off).toEqual({ ...on, changed: true, state: 'disabled', reason, since: expect.any(String) });
    expect(Math.abs(Date.parse(off.since) - Date.now())).toBeLessThan(60_000);
    expect(await done('webhook', 'disable', PREFIX)).toMatchObject({ changed: false, since: off.since });
    expect(await done('webhook', 'remove', PREFIX)).toMatchObject({
      changed: true,
      state: 'none',
      set_at: null,
    });
  });

  test('keeps the run of failures as the reason of a switch-off, and ends it with an enable alone', async () => {
    const { fuel, done, account, withEngines, eventsOf } = commandLine();
    await account(opened(), keyIssued(), webhookSet());
    await withEngines((engines) => failDeliveries(engines.queue(), 25));
    const before = (await done('webhook', 'show', PREFIX)).health;
    expect(before).toEqual({
      failed_in_a_row: 25,
      failing_since: expect.any(String),
      last_answers: Array(5).fill('503'),
    });
    expect(await done('webhook', 'enable', PREFIX)).toMatchObject({ changed: false, health: before });
    await done('webhook', 'disable', PREFIX);
    expect((await eventsOf('account-7')).at(-1)).toMatchObject({ type: 'WebhookDisabled', data: before });
    expect((await done('webhook', 'show', PREFIX)).health).toEqual(before);
    const healthy = { failed_in_a_row: 0, failing_since: null, last_answers: [] };
    expect(await done('webhook', 'enable', PREFIX)).toMatchObject({
      changed: true,
      state: 'active',
      health: healthy,
    });
    expect((await fuel('webhook', 'enable', PREFIX)).stdout).toMatch(/^no change/);
  });

  test('rate sets an upper bound of deliveries a second, which show names, and off ends it', async () => {
    const { fuel, done, account, eventsOf } = commandLine();
    await account(opened(), keyIssued(), webhookSet());
    expect((await fuel('webhook', 'show', PREFIX)).stdout).toMatch(/^Rate per second +–$/m);
    expect(await done('webhook', 'rate', PREFIX, '20')).toMatchObject({ changed: true, rate_per_second: 20 });
    expect((await eventsOf('account-7')).at(-1)).toMatchObject({
      type: 'WebhookRateSet',
      data: { account_id: 7, prefix: PREFIX, per_second: 20 },
    });
    expect((await fuel('webhook', 'show', PREFIX)).stdout).toMatch(/^Rate per second +20$/m);
    expect(await done('webhook', 'rate', PREFIX, '20')).toMatchObject({ changed: false });
    expect(await done('webhook', 'rate', PREFIX, 'off')).toMatchObject({ rate_per_second: null });
    for (const wrong of ['0', '1001', '1.5', 'on'])
      expect((await fuel('webhook', 'rate', PREFIX, wrong)).stderr).toMatch(
        /It must be off, or a whole number from 1 to 1000\./,
      );
  });

  test('set shows a new secret only once, and warns of a name that does not resolve', async () => {
    const { fuel, done, account } = commandLine();
    await account(opened(), keyIssued());
    const first = await fuel('webhook', 'set', PREFIX, 'https://nowhere.invalid/');
    expect(first.stdout).toMatch(
      /^set to https:\/\/nowhere\.invalid\/\nwebhook secret: [A-Za-z0-9]{43}\nfor Standard Webhooks: whsec_[A-Za-z0-9+/]+=*\nKeep it now: it is never shown again\.\n$/,
    );
    expect(first.stderr).toMatch(/^nowhere\.invalid does not resolve at present/);
    const changed = await done('webhook', 'set', PREFIX, 'https://203.0.114.5/');
    expect(changed).toMatchObject({
      changed: true,
      webhook_secret: null,
      webhook_secret_standard: null,
      warning: null,
      state: 'active',
    });
    expect((await fuel('webhook', 'set', PREFIX, 'https://203.0.114.5/')).stdout).toMatch(/^no change/);
  });
});
