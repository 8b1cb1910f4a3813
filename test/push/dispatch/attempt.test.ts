import { describe, expect, test } from 'vitest';
import { Directory } from '../../../src/accounts/directory/fold/directory.ts';
import type { AccountEvent, Environment } from '../../../src/domain/account-events.ts';
import { checkAttempt } from '../../../src/push/dispatch/attempt.ts';
import { onKey, PREFIX, profileSet, webhookSet } from '../../support/accounts/account-samples.ts';
import { READY } from '../../support/deliveries/push.ts';

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

function check(
  events: readonly Told[],
  { prefix = PREFIX, environment = 'staging' as Environment, accountId = 7 } = {},
) {
  return checkAttempt(directoryOf(events), { prefix, accountId }, { environment, nowMs: NOW_MS });
}

describe('an attempt', () => {
  test('goes to the present URL of the webhook', () => {
    expect(check(READY)).toMatchObject({
      kind: 'go',
      url: 'https://example.com/hook',
      key: { prefix: PREFIX },
    });
    const moved = webhookSet({ url: 'https://example.com/new', secret: null });
    expect(check([...READY, moved])).toMatchObject({ kind: 'go', url: 'https://example.com/new' });
  });

  test('is held while its account can not be read: what was last known of its keys may be wrong', () => {
    expect(check([...READY, UNKNOWN])).toEqual({ kind: 'hold' });
    expect(check([...READY, onKey('KeySwitchedOff'), UNKNOWN])).toEqual({ kind: 'hold' });
    expect(check([...READY, UNKNOWN], { prefix: 'bbbbbbbbbb' })).toEqual({ kind: 'hold' });
  });

  test('is held while access checks 4 or 5 fail', () => {
    expect(check([...READY, INTEGRATION_OFF])).toEqual({ kind: 'hold' });
    expect(check([...READY, profileSet('2026-01-01T00:00:00.000Z', at(0))])).toEqual({ kind: 'hold' });
    expect(check([...READY, profileSet('2026-01-01T00:00:00.000Z', at(1))])).toMatchObject({ kind: 'go' });
  });

  test('ends for a key that can not be sent to, also without access', () => {
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
    ].map((reason) => ({ kind: 'end', reason }));
    expect(reasons).toEqual([expected, expected]);
    expect(check(READY, { accountId: 8 })).toEqual({ kind: 'end', reason: 'the key is not known' });
  });
});
