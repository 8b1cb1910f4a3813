import { describe, expect, test } from 'vitest';
import type { DeliveryQueue } from '../../../../src/push/queue/delivery-queue.ts';
import { keyIssued, opened, PREFIX, webhookSet } from '../../../support/accounts/account-samples.ts';
import { claimOptions, failed, newDelivery } from '../../../support/deliveries/deliveries.ts';
import { commandLine } from '../../../support/service/command-line.ts';

async function failDeliveries(queue: DeliveryQueue, count: number): Promise<void> {
  const deliveries = Array.from({ length: count }, (_, index) => newDelivery(index, { prefix: PREFIX }));
  const claimed = await queue.enqueue(deliveries, claimOptions(1_000));
  await queue.report(claimed.map((claim) => failed(claim, 2_000)));
}

describe('fuel webhook', () => {
  test('keeps the run of failures as the reason of a switch-off, and ends it with an enable alone', async () => {
    const { done, account, withEngines, eventsOf } = commandLine();
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
  });
});
