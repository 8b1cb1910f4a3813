import { expect, test } from 'vitest';
import { decideDeliveries } from '../../projections/deliveries.ts';
import type { AccountEvent } from '../../src/domain/account-events.ts';
import { keyIssued, onKey, opened, PREFIX, webhookSet } from '../support/accounts/account-samples.ts';
import { foldAccount } from '../support/accounts/evolve.ts';

const SET_AT_MS = Date.parse('2026-09-01T00:00:00.000Z');
const DAY_MS = 86_400_000;
const terms = { retentionMs: 90 * DAY_MS, nowMs: SET_AT_MS + DAY_MS, environment: 'staging' } as const;
const transaction = { createdAtMs: SET_AT_MS, occurredAtMs: SET_AT_MS + 1_000 };

function decide(events: readonly AccountEvent[], changes: Partial<typeof transaction & typeof terms> = {}) {
  const account = foldAccount(events.map((event) => ({ event, atMs: 1_000 })));
  return decideDeliveries({ ...transaction, ...changes }, account, { ...terms, ...changes });
}

const notSent = (reason: string) => ({ owed: [], notSent: [{ key: PREFIX, reason }] });

test('a transaction is owed to each key of its account that has a webhook, and every other key is named', () => {
  const other = { prefix: 'bbbbbbbbbb' };
  const third = { prefix: 'cccccccccc', driver_mobile: true };
  const events = [opened(), keyIssued(), webhookSet(), keyIssued(other), keyIssued(third), webhookSet(third)];
  expect(decide(events)).toEqual({
    owed: [
      { prefix: PREFIX, mobileNumber: false },
      { prefix: 'cccccccccc', mobileNumber: true },
    ],
    notSent: [{ key: 'bbbbbbbbbb', reason: 'the key has no webhook' }],
  });
});

test('a transaction created at the very moment the URL was set is owed, one a millisecond earlier is not', () => {
  const events = [opened(), keyIssued(), webhookSet()];
  expect(decide(events, { createdAtMs: SET_AT_MS }).owed).toHaveLength(1);
  expect(decide(events, { createdAtMs: SET_AT_MS - 1 })).toEqual(
    notSent('the transaction was created before the webhook URL was set'),
  );
});

test('nothing is owed to a key that is off, disabled, without webhook or of the other environment', () => {
  const ready = [opened(), keyIssued(), webhookSet()];
  expect(decide([...ready, onKey('KeySwitchedOff')])).toEqual(notSent('the key is switched off'));
  expect(decide([...ready, onKey('WebhookDisabled')])).toEqual(notSent('the webhook is disabled: 50 failed'));
  expect(decide([opened(), keyIssued()])).toEqual(notSent('the key has no webhook'));
  expect(decide(ready, { environment: 'production' } as never)).toEqual(
    notSent('the key belongs to staging'),
  );
});

test('an event recorded longer ago than the delivery log is kept is owed to nobody', () => {
  const events = [opened(), keyIssued(), webhookSet()];
  const edge = terms.nowMs - terms.retentionMs;
  expect(decide(events, { occurredAtMs: edge }).owed).toHaveLength(1);
  expect(decide(events, { occurredAtMs: edge - 1 })).toEqual(
    notSent('the transaction was recorded longer ago than the delivery log is kept'),
  );
});

test('a webhook that is enabled again, or set again, is owed what is recorded after', () => {
  const ready = [opened(), keyIssued(), webhookSet()];
  expect(decide([...ready, onKey('WebhookDisabled'), onKey('WebhookEnabled')]).owed).toHaveLength(1);
  const again = webhookSet({ set_at: '2026-09-02T00:00:00.000Z', secret: null });
  const removed = [...ready, onKey('WebhookRemoved'), again];
  expect(decide(removed).owed).toEqual([]);
  expect(decide(removed, { createdAtMs: SET_AT_MS + DAY_MS }).owed).toHaveLength(1);
});

test('access checks do not cancel a delivery, and an account that is not open is owed nothing', () => {
  expect(
    decide([opened(), keyIssued(), webhookSet(), { type: 'IntegrationDisabled', data: { account_id: 7 } }])
      .owed,
  ).toHaveLength(1);
  expect(decide([])).toEqual({ owed: [], notSent: [] });
});
