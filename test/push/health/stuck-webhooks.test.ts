import { describe, expect, onTestFinished, test } from 'vitest';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import { StuckWebhooks } from '../../../src/push/health/stuck-webhooks.ts';
import { openDeliveryLog } from '../../../src/push/log/open.ts';
import { DELIVERY_STORE } from '../../../src/push/log/tables.ts';
import {
  keyIssued,
  onKey,
  opened,
  PREFIX,
  profileSet,
  webhookSet,
} from '../../support/accounts/account-samples.ts';
import { rowsOfEvents } from '../../support/accounts/kept-rows.ts';
import {
  answered,
  claimFrom,
  claimOptions,
  newDelivery,
  retryAt,
} from '../../support/deliveries/deliveries.ts';
import { MemoryStores } from '../../support/engines/memory-stores.ts';

const OTHER = 'bbbbbbbbbb';
const START_MS = Date.parse('2026-09-10T00:00:00.000Z');
const ENABLED: AccountEvent = { type: 'IntegrationEnabled', data: { account_id: 7 } };
const ACCESS = [opened(), ENABLED, profileSet('2026-09-01T00:00:00.000Z', '2026-10-01T00:00:00.000Z')];
const KEYS = [PREFIX, OTHER].flatMap((prefix) => [keyIssued({ prefix }), webhookSet({ prefix })]);

async function watching(
  events: readonly AccountEvent[] = [...ACCESS, ...KEYS],
  environment = 'staging' as const,
) {
  let nowMs = START_MS;
  const clock = { now: () => nowMs };
  const queue = openDeliveryLog(new MemoryStores().open(DELIVERY_STORE, clock), clock);
  onTestFinished(() => queue.close());
  const rows = await rowsOfEvents(events, clock);
  const webhooks = new StuckWebhooks({ queue, rows, environment, clock });
  await queue.enqueue([newDelivery(1, due(PREFIX)), newDelivery(2, due(PREFIX)), newDelivery(3, due(OTHER))]);
  return {
    queue,
    /** Looks after so many seconds. Returns for how many each webhook has been stuck. */
    async lookAfter(seconds: number): Promise<Record<string, number>> {
      nowMs += 1_000 * seconds;
      const found = (await webhooks.look()).filter(({ isCertain }) => isCertain);
      return Object.fromEntries(found.map(({ prefix, sinceMs }) => [prefix, (nowMs - sinceMs) / 1_000]));
    },
    /** Claims one delivery of the webhook. */
    async claim(prefix: string) {
      const claimed = await claimFrom(
        queue,
        claimOptions(nowMs, { limit: 1, laneCapacity: (lane) => (lane === prefix ? 1 : 0) }),
      );
      const [claim] = claimed;
      if (claim === undefined) throw new Error('nothing is due');
      return claim;
    },
    now: () => nowMs,
  };
}

function due(prefix: string) {
  return { prefix, createdAtMs: START_MS };
}

describe('a webhook is stuck', () => {
  test('from the time its oldest delivery was due, once two looks found the same one', async () => {
    const { lookAfter } = await watching();
    expect(await lookAfter(100)).toEqual({});
    expect(await lookAfter(15)).toEqual({ [PREFIX]: 115, [OTHER]: 115 });
  });

  test('while another one gets its deliveries', async () => {
    const { lookAfter, claim } = await watching();
    await lookAfter(100);
    await claim(OTHER);
    expect(await lookAfter(2)).toEqual({ [PREFIX]: 102 });
  });

  test('no longer than since its last attempt, if it has a backlog', async () => {
    const { lookAfter, claim } = await watching();
    await lookAfter(3_600);
    await claim(PREFIX);
    expect(await lookAfter(3)).toEqual({ [OTHER]: 3_603 });
    expect(await lookAfter(1)).toEqual({ [PREFIX]: 1, [OTHER]: 3_604 });
  });

  test('only after the time that its receiver has asked for', async () => {
    const { lookAfter, claim, queue, now } = await watching();
    const first = await claim(PREFIX);
    await queue.report([retryAt(first, now(), now() + 125_000, answered(503, '120'))]);
    await lookAfter(1);
    expect((await lookAfter(99))[PREFIX]).toBe(-20.25);
    expect((await lookAfter(24))[PREFIX]).toBe(3.75);
    expect((await lookAfter(2))[PREFIX]).toBe(5.75);
  });

  test.each<[string, readonly AccountEvent[]]>([
    ['its integration is off', [opened(), ...ACCESS.slice(2), ...KEYS]],
    [
      'its profile has ended',
      [opened(), ENABLED, profileSet('2026-09-01T00:00:00.000Z', '2026-09-09T00:00:00.000Z'), ...KEYS],
    ],
    ['it is switched off', [...ACCESS, ...KEYS, onKey('WebhookDisabled')]],
    ['its key is off', [...ACCESS, ...KEYS, onKey('KeySwitchedOff')]],
    ['its key is not known', ACCESS],
  ])('not while %s', async (_, events) => {
    const { lookAfter } = await watching(events);
    await lookAfter(100);
    expect(await lookAfter(100)).not.toHaveProperty(PREFIX);
  });
});
