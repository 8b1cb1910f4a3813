import { describe, expect, test } from 'vitest';
import { Directory } from '../../../src/accounts/directory/fold/directory.ts';
import { silentLog } from '../../../src/base/log.ts';
import type { AccountEvent, Environment } from '../../../src/domain/account-events.ts';
import { judge } from '../../../src/push/dispatch/attempt.ts';
import { onKey, PREFIX, profileSet, webhookSet } from '../../support/accounts/account-samples.ts';
import { newDelivery } from '../../support/deliveries/deliveries.ts';
import { NO_METRICS, READY } from '../../support/deliveries/push.ts';

const NOW_MS = Date.parse('2026-09-03T08:00:00.000Z');
const at = (afterMs: number) => new Date(NOW_MS + afterMs).toISOString();
const INTEGRATION_OFF: AccountEvent = { type: 'IntegrationDisabled', data: { account_id: 7 } };
const UNKNOWN = { ok: false, reason: 'unknown event type AccountFrozen' } as const;
type Told = AccountEvent | typeof UNKNOWN;

function directoryOf(events: readonly Told[]): Directory {
  const directory = new Directory();
  for (const [revision, event] of events.entries()) {
    const decoded = 'ok' in event ? event : ({ ok: true, event, atMs: 1_000 } as const);
    directory.apply({ position: revision + 1, stream: 'account-7', revision, decoded });
  }
  return directory;
}

/** Where it is sent, with which key; or what is reported instead. */
function check(
  events: readonly Told[],
  { prefix = PREFIX, environment = 'staging' as Environment, accountId = 7 } = {},
) {
  const delivery = { ...newDelivery(1, { prefix, accountId }), cycle: 1, attemptNumber: 1, leaseToken: 'x' };
  const judged = judge(delivery, undefined, {
    directory: directoryOf(events),
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
  test('goes to the present URL of the webhook', () => {
    expect(check(READY)).toMatchObject({ url: 'https://example.com/hook', headers: { key: PREFIX } });
    const moved = webhookSet({ url: 'https://example.com/new', secret: null });
    expect(check([...READY, moved])).toMatchObject({ url: 'https://example.com/new' });
  });

  test('is held while its account cannot be read: what was last known of its keys may be wrong', () => {
    expect(check([...READY, UNKNOWN])).toBe('held');
    expect(check([...READY, onKey('KeySwitchedOff'), UNKNOWN])).toBe('held');
    expect(check([...READY, UNKNOWN], { prefix: 'bbbbbbbbbb' })).toBe('held');
  });

  test('is held while access checks 4 or 5 fail', () => {
    expect(check([...READY, INTEGRATION_OFF])).toBe('held');
    expect(check([...READY, profileSet('2026-01-01T00:00:00.000Z', at(0))])).toBe('held');
    expect(check([...READY, profileSet('2026-01-01T00:00:00.000Z', at(1))])).toHaveProperty('url');
  });

  test('ends for a key that cannot be sent to, also without access', () => {
    const closed = [...READY, INTEGRATION_OFF];
    const reasons = [READY, closed].map((events) => [
      check([...events, onKey('KeySwitchedOff')]),
      check([...events, onKey('WebhookRemoved')]),
      check([...events, onKey('WebhookDisabled')]),
      check(events, { environment: 'production' }),
      check(events, { prefix: 'bbbbbbbbbb' }),
    ]);
    const expected = [
      'the key is switched off',
      'the key has no webhook',
      'the webhook is disabled: 50 failed',
      'the key belongs to staging',
      'the key is not known',
    ];
    expect(reasons).toEqual([expected, expected]);
    expect(check(READY, { accountId: 8 })).toBe('the key is not known');
  });
});
