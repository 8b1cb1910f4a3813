import { describe, expect, test } from 'vitest';
import { readKeys } from '../../../src/accounts/rows/read-rows.ts';
import { silentLog } from '../../../src/base/log.ts';
import type { AccountEvent, Environment } from '../../../src/domain/account-events.ts';
import { judge } from '../../../src/push/dispatch/attempt.ts';
import { onKey, PREFIX, profileSet, webhookSet } from '../../support/accounts/account-samples.ts';
import { rowsOfEvents } from '../../support/accounts/kept-rows.ts';
import { newDelivery } from '../../support/deliveries/deliveries.ts';
import { NO_METRICS, READY } from '../../support/deliveries/push.ts';

const NOW_MS = Date.parse('2026-09-03T08:00:00.000Z');
const at = (afterMs: number) => new Date(NOW_MS + afterMs).toISOString();
const INTEGRATION_OFF: AccountEvent = { type: 'IntegrationDisabled', data: { account_id: 7 } };
const UNKNOWN = { type: 'AccountFrozen', data: { account_id: 7 } };
type Told = AccountEvent | typeof UNKNOWN;

/** Returns the URL and the key of the attempt, or the report made instead. `position` is that of the transaction's event. */
async function check(
  events: readonly Told[],
  { prefix = PREFIX, environment = 'staging' as Environment, accountId = 7, position = 100, cycle = 1 } = {},
) {
  const owed = newDelivery(1, { prefix, accountId, position });
  const delivery = { ...owed, cycle, attemptNumber: 1, leaseToken: 'x' };
  const rows = await rowsOfEvents(events, { now: () => NOW_MS - 1_000_000_000 });
  const judged = judge(delivery, (await readKeys(rows, [prefix])).get(prefix), {
    environment,
    requestFor: (_, { url, key }) => ({ url, headers: { key: key.prefix }, body: '' }),
    clock: { now: () => NOW_MS, setTimer: () => () => undefined },
    log: silentLog,
    metrics: NO_METRICS,
  });
  if (judged.kind === 'send') return judged.request;
  return judged.kind === 'failed' ? judged.reason : judged.kind;
}

describe('an attempt', () => {
  test('goes to the present URL of the webhook', async () => {
    expect(await check(READY)).toMatchObject({ url: 'https://example.com/hook', headers: { key: PREFIX } });
    const moved = webhookSet({ url: 'https://example.com/new', secret: null });
    expect(await check([...READY, moved])).toMatchObject({ url: 'https://example.com/new' });
  });

  test('is not made while its account cannot be read: what was last known of its keys may be wrong', async () => {
    expect(await check([...READY, UNKNOWN])).toBe('released');
    expect(await check([...READY, onKey('KeySwitchedOff'), UNKNOWN], { position: 1 })).toBe('released');
    expect(await check([...READY, UNKNOWN], { prefix: 'bbbbbbbbbb' })).toBe('released');
  });

  test('is not made while access checks 4 or 5 fail', async () => {
    expect(await check([...READY, INTEGRATION_OFF])).toBe('released');
    expect(await check([...READY, profileSet('2026-01-01T00:00:00.000Z', at(0))])).toBe('released');
    expect(await check([...READY, profileSet('2026-01-01T00:00:00.000Z', at(1))])).toHaveProperty('url');
  });

  test('is not made for a key that cannot be sent to, or is not known', async () => {
    for (const type of ['KeySwitchedOff', 'WebhookRemoved', 'WebhookDisabled'] as const)
      expect(await check([...READY, onKey(type)])).toBe('released');
    expect(await check(READY, { environment: 'production' })).toBe('released');
    expect(await check(READY, { prefix: 'bbbbbbbbbb' })).toBe('released');
    expect(await check(READY, { accountId: 8 })).toBe('the key belongs to another account');
  });

  test('is replaced by its end after an event that ended it, though the webhook is on again', async () => {
    const again = [...READY, onKey('WebhookRemoved'), webhookSet({ secret: null })];
    const ended = READY.length + 1;
    expect(await check(again, { position: ended - 1 })).toBe('the webhook was removed');
    expect(await check(again, { position: ended - 1, cycle: 2 })).toHaveProperty('url');
    expect(await check(again, { position: ended + 1 })).toHaveProperty('url');
    const closed = [...again, INTEGRATION_OFF];
    expect(await check(closed, { position: ended - 1 })).toBe('the webhook was removed');
  });
});
