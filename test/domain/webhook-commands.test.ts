import { describe, expect, test } from 'vitest';
import { type AccountCommand, decide } from '../../src/domain/account-commands.ts';
import type { AccountEvent } from '../../src/domain/account-events.ts';
import {
  KEY,
  keyIssued,
  onKey,
  opened,
  PREFIX,
  profileSet,
  REWRAPPED,
  rateSet,
  SECRET,
  secretRewrapped,
  webhookSet,
} from '../support/accounts/account-samples.ts';
import { given } from '../support/accounts/given.ts';

const key = { account_id: 7, prefix: PREFIX };
const AT = Date.parse('2026-09-05T12:00:00Z');
const EVIDENCE = { failedInARow: 25, failingSinceMs: AT - 1_000, lastAnswers: ['503'] };
const evidenceData = {
  failed_in_a_row: 25,
  failing_since: '2026-09-05T11:59:59.000Z',
  last_answers: ['503'],
};

const enable = { type: 'EnableWebhook', ...KEY } as const;
const disable = { type: 'DisableWebhook', ...KEY, reason: '50 failed', evidence: EVIDENCE } as const;
const warn = { type: 'WarnWebhook', ...KEY, evidence: EVIDENCE } as const;
const testRequest = { type: 'RequestWebhookTest', ...KEY, deliveryId: 'd-1', atMs: AT } as const;
const rateCommand = { type: 'SetWebhookRate', ...KEY, perSecond: 20 } as const;
const redeliver = (overrides: object = {}): AccountCommand => ({
  type: 'RequestRedelivery',
  ...KEY,
  deliveryIds: ['d-1'],
  sinceMs: null,
  untilMs: null,
  force: false,
  ...overrides,
});

const issued = [opened(), keyIssued()];
const withWebhook = [...issued, webhookSet()];
const disabled = [...withWebhook, onKey('WebhookDisabled')];
const integrationOn: AccountEvent = { type: 'IntegrationEnabled', data: { account_id: 7 } };
const open = [...withWebhook, integrationOn, profileSet('2026-09-01T00:00:00Z', '2026-10-01T00:00:00Z')];

describe('a webhook secret', () => {
  const rewrap = { type: 'RewrapWebhookSecret', ...KEY, secret: REWRAPPED } as const;

  test('is rewrapped once, whether its webhook is on, disabled or removed', () => {
    for (const history of [withWebhook, disabled, [...withWebhook, onKey('WebhookRemoved')]]) {
      given(...history)
        .when(rewrap)
        .thenEvents(secretRewrapped());
    }
    given(...withWebhook, secretRewrapped())
      .when({ ...rewrap, secret: { ...REWRAPPED, nonce: 'b3RoZXI=' } })
      .thenUnchanged();
    given(...withWebhook, secretRewrapped())
      .when({ ...rewrap, secret: SECRET })
      .thenEvents(secretRewrapped(SECRET));
  });

  test('cannot be rewrapped where the key has none', () => {
    given(...issued)
      .when(rewrap)
      .thenRefused(/has no webhook secret\. .*fuel webhook set/);
  });
});

describe('a webhook', () => {
  test('is disabled once, with the reason and its evidence', () => {
    const data = { ...key, reason: '50 failed', ...evidenceData };
    given(...withWebhook)
      .when(disable)
      .thenEvents({ type: 'WebhookDisabled', data });
    given(...disabled)
      .when(disable)
      .thenUnchanged();
  });

  test('is enabled when it was disabled', () => {
    given(...disabled)
      .when(enable)
      .thenEvents({ type: 'WebhookEnabled', data: key });
    given(...withWebhook)
      .when(enable)
      .thenUnchanged();
  });

  test('is warned about only while it exists and is enabled', () => {
    given(...withWebhook)
      .when(warn)
      .thenEvents({ type: 'WebhookFailing', data: { ...key, ...evidenceData } });
    given(...disabled)
      .when(warn)
      .thenUnchanged();
    given(...issued)
      .when(warn)
      .thenUnchanged();
  });

  test.each<AccountCommand>([enable, disable, testRequest, redeliver(), rateCommand])(
    'must be there for $type',
    (command) => {
      given(...issued)
        .when(command)
        .thenRefused(/has no webhook\. Run `fuel webhook set abcdefghij URL` first/);
    },
  );

  test.each<AccountCommand>([testRequest, redeliver()])('must not be disabled for $type', (command) => {
    given(...disabled)
      .when(command)
      .thenRefused(/is disabled \(50 failed\)\. Run `fuel webhook enable abcdefghij` first/);
  });

  test.each<AccountCommand>([testRequest, redeliver()])(
    'must belong to a key that is on for $type',
    (command) => {
      given(...withWebhook, onKey('KeySwitchedOff'))
        .when(command)
        .thenRefused(/is switched off\. Run `fuel key on abcdefghij` first/);
    },
  );
});

describe('the rate of a webhook', () => {
  const rate = (perSecond: number | null) => ({ type: 'SetWebhookRate', ...KEY, perSecond }) as const;

  test('is set, replaced and taken away, each once', () => {
    for (const perSecond of [1, 20, 1_000]) {
      given(...withWebhook)
        .when(rate(perSecond))
        .thenEvents(rateSet(perSecond));
    }
    const limited = [...withWebhook, rateSet(20)];
    given(...limited)
      .when(rate(20))
      .thenUnchanged();
    given(...limited)
      .when(rate(5))
      .thenEvents(rateSet(5));
    given(...limited)
      .when(rate(null))
      .thenEvents(rateSet(null));
    given(...withWebhook)
      .when(rate(null))
      .thenUnchanged();
  });

  test.each([0, -1, 1.5, 1_001, Number.NaN])('is never %s', (perSecond) => {
    given(...withWebhook)
      .when(rate(perSecond))
      .thenRefused(/^the rate must be a whole number from 1 to 1000 deliveries a second, or off$/);
  });

  test('may be set while the webhook is disabled', () => {
    given(...disabled)
      .when(rate(20))
      .thenEvents(rateSet(20));
  });
});

describe('a test of a webhook', () => {
  test('is recorded with its delivery id', () => {
    given(...open)
      .when(testRequest)
      .thenEvents({ type: 'WebhookTestRequested', data: { ...key, delivery_id: 'd-1' } });
  });

  test('needs the integration on, and a charging profile at that moment', () => {
    given(...withWebhook)
      .when(testRequest)
      .thenRefused(/the integration of account 7 is off/);
    given(...withWebhook, integrationOn)
      .when(testRequest)
      .thenRefused(/no current charging profile/);
    given(...open)
      .when({ ...testRequest, atMs: Date.parse('2026-10-01T00:00:00Z') })
      .thenRefused(/no current charging profile/);
  });
});

describe('a redelivery', () => {
  test('is recorded each time it is asked for, also while the account has no access', () => {
    const data = { ...key, delivery_ids: ['d-1'], since: null, until: null, force: false };
    const requested: AccountEvent = { type: 'RedeliveryRequested', data };
    given(...withWebhook)
      .when(redeliver())
      .thenEvents(requested);
    given(...withWebhook, requested)
      .when(redeliver())
      .thenEvents(requested);
  });

  test('of all that failed names its times instead of ids', () => {
    const command = redeliver({ deliveryIds: null, sinceMs: AT, untilMs: null, force: false });
    const data = { ...key, delivery_ids: null, since: '2026-09-05T12:00:00.000Z', until: null, force: false };
    given(...withWebhook)
      .when(command)
      .thenEvents({ type: 'RedeliveryRequested', data });
    const between = { ...data, until: '2026-09-05T12:00:01.000Z' };
    given(...withWebhook)
      .when({ ...command, untilMs: AT + 1_000 } as AccountCommand)
      .thenEvents({ type: 'RedeliveryRequested', data: between });
  });
});

test('every command on a webhook needs a key that was issued', () => {
  for (const command of [enable, disable, warn, testRequest, redeliver()]) {
    given(opened())
      .when(command)
      .thenRefused(/account 7 has no key abcdefghij/);
    expect(decide(command, undefined)).toMatchObject({ kind: 'refused' });
  }
});
