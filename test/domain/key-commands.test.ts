import { describe, test } from 'vitest';
import type { AccountCommand } from '../../src/domain/account-commands.ts';
import {
  issueKey,
  KEY,
  keyIssued,
  onKey,
  opened,
  PREFIX,
  setWebhookUrl,
  webhookSet,
} from '../support/accounts/account-samples.ts';
import { given } from '../support/accounts/given.ts';

const key = { account_id: 7, prefix: PREFIX };

describe('a key', () => {
  const production = keyIssued({
    environment: 'production',
    label: 'ERP',
    secret_sha256: 'ff'.repeat(32),
    allow_list: ['203.0.113.0/24'],
    driver_mobile: true,
  });

  test('is issued under a prefix of its own', () => {
    given(opened()).when(issueKey()).thenEvents(production);
    given(opened(), production)
      .when(issueKey())
      .thenRefused(/has a key abcdefghij already/);
  });

  test('for production always has an allow-list, one for staging need not', () => {
    const set = (allowList: string[]): AccountCommand => ({ type: 'SetKeyAllowList', ...KEY, allowList });
    given(opened())
      .when(issueKey({ allowList: [] }))
      .thenRefused(/needs an allow-list/);
    given(opened(), production)
      .when(set([]))
      .thenRefused(/needs an allow-list/);
    given(opened(), production)
      .when(set(['203.0.113.0/24']))
      .thenUnchanged();
    given(opened(), keyIssued({ allow_list: ['::1'] }))
      .when(set([]))
      .thenEvents({ type: 'KeyAllowListSet', data: { ...key, allow_list: [] } });
  });

  test.each([0, -1, 1.5, Number.NaN, 2 ** 53])('never has a rate limit of %s', (rateLimit) => {
    given(opened())
      .when(issueKey({ rateLimit }))
      .thenRefused(/at least 1/);
    given(opened(), production)
      .when({ type: 'SetKeyRateLimit', ...KEY, rateLimit })
      .thenRefused(/at least 1/);
  });

  test('has its rate limit and its driver numbers set', () => {
    const set = (rateLimit: number): AccountCommand => ({ type: 'SetKeyRateLimit', ...KEY, rateLimit });
    given(opened(), production).when(set(60)).thenUnchanged();
    given(opened(), production)
      .when(set(1))
      .thenEvents({ type: 'KeyRateLimitSet', data: { ...key, rate_limit: 1 } });
    given(opened(), production)
      .when({ type: 'SetKeyDriverMobile', ...KEY, enabled: true })
      .thenUnchanged();
    given(opened(), production)
      .when({ type: 'SetKeyDriverMobile', ...KEY, enabled: false })
      .thenEvents({ type: 'KeyDriverMobileSet', data: { ...key, enabled: false } });
  });

  test('is switched off and on again', () => {
    const off = { type: 'SwitchKeyOff', ...KEY } as const;
    const on = { type: 'SwitchKeyOn', ...KEY } as const;
    given(opened(), keyIssued()).when(on).thenUnchanged();
    given(opened(), keyIssued()).when(off).thenEvents(onKey('KeySwitchedOff'));
    given(opened(), keyIssued(), onKey('KeySwitchedOff')).when(off).thenUnchanged();
    given(opened(), keyIssued(), onKey('KeySwitchedOff')).when(on).thenEvents(onKey('KeySwitchedOn'));
  });

  test('that was never issued is named with the way to find those that were', () => {
    const reason = /account 7 has no key abcdefghij\. Run `fuel key list --account 7`/;
    given(opened())
      .when({ type: 'SwitchKeyOff', ...KEY })
      .thenRefused(reason);
  });
});

describe('a webhook', () => {
  const url = 'https://example.com/hook';
  const other = 'https://example.com/other';

  test('is set with a new secret and the time of the command', () => {
    const set_at = '2026-09-05T00:00:00.000Z';
    given(opened(), keyIssued()).when(setWebhookUrl(url)).thenEvents(webhookSet({ set_at }));
  });

  test('set again with the same URL is unchanged', () => {
    given(opened(), keyIssued(), webhookSet()).when(setWebhookUrl(url)).thenUnchanged();
  });

  test('keeps its secret and its set time when the URL is changed', () => {
    given(opened(), keyIssued(), webhookSet())
      .when(setWebhookUrl(other))
      .thenEvents(webhookSet({ url: other, secret: null }));
  });

  test('removed and set again has a new set time and keeps its secret', () => {
    given(opened(), keyIssued(), webhookSet(), onKey('WebhookRemoved'))
      .when(setWebhookUrl(url))
      .thenEvents(webhookSet({ set_at: '2026-09-05T00:00:00.000Z', secret: null }));
  });

  test('is removed once', () => {
    const remove = { type: 'RemoveWebhook', ...KEY } as const;
    given(opened(), keyIssued(), webhookSet()).when(remove).thenEvents(onKey('WebhookRemoved'));
    given(opened(), keyIssued()).when(remove).thenUnchanged();
  });
});
