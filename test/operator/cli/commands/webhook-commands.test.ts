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
    const url = 'https://example.com/hook';
    const set_at = '2026-09-01T00:00:00.000Z';
    const on = {
      prefix: PREFIX,
      account: 7,
      state: 'active',
      reason: null,
      since: null,
      url,
      set_at,
      health,
    };
    expect(await done('webhook', 'show', PREFIX)).toEqual(on);
    expect(await done('webhook', 'show', other)).toEqual({
      ...{
        prefix: other,
        account: 7,
        state: 'none',
        reason: null,
        since: null,
        url: null,
        set_at: null,
        health,
      },
    });
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
    expect((await fuel('webhook', 'enable', PREFIX)).stdout).toMatch(/nothing to change/);
  });

  test('set shows a new secret only once, and warns of a name that does not resolve', async () => {
    const { fuel, done, account } = commandLine();
    await account(opened(), keyIssued());
    const first = await fuel('webhook', 'set', PREFIX, 'https://nowhere.invalid/');
    expect(first.stdout).toMatch(
      /^set to https:\/\/nowhere\.invalid\/\nwebhook secret: [A-Za-z0-9]{43}\nKeep it now: it is never shown again\.\n$/,
    );
    expect(first.stderr).toMatch(/^nowhere\.invalid does not resolve at present/);
    const changed = await done('webhook', 'set', PREFIX, 'https://203.0.114.5/');
    expect(changed).toMatchObject({ changed: true, webhook_secret: null, warning: null, state: 'active' });
    expect((await fuel('webhook', 'set', PREFIX, 'https://203.0.114.5/')).stdout).toMatch(
      /^nothing to change/,
    );
  });
});
