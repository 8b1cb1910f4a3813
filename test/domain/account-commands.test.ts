import { describe, expect, test } from 'vitest';
import { type AccountCommand, decide } from '../../src/domain/account-commands.ts';
import type { AccountEvent } from '../../src/domain/account-events.ts';
import {
  corporateAdded,
  groupAdded,
  KEY,
  keyIssued,
  onKey,
  opened,
  PREFIX,
  profileSet,
  SECRET,
  webhookSet,
} from '../support/accounts/account-samples.ts';
import { foldAccount } from '../support/accounts/evolve.ts';
import { given } from '../support/accounts/given.ts';

const account = { account_id: 7 };
const key = { ...account, prefix: PREFIX };
const [FROM, TO] = ['2026-09-01T00:00:00.000Z', '2026-10-01T00:00:00.000Z'];
const open = (name: string): AccountCommand => ({ type: 'OpenAccount', accountId: 7, name });
const setProfile = (from: string, to: string | null): AccountCommand => ({
  type: 'SetChargingProfile',
  accountId: 7,
  profile: 'standard',
  fromMs: Date.parse(from),
  toMs: to === null ? null : Date.parse(to),
});
const setCorporate = (name: string, groupId?: number | null): AccountCommand => ({
  type: 'SetCorporate',
  accountId: 7,
  corporateId: 31,
  name,
  groupId,
});
const issue = (overrides: object = {}): AccountCommand => ({
  type: 'IssueKey',
  ...KEY,
  environment: 'production',
  label: 'ERP',
  secretSha256: 'ff'.repeat(32),
  allowList: ['203.0.113.0/24'],
  rateLimit: 60,
  driverMobile: true,
  ...overrides,
});
const setUrl = (url: string): AccountCommand => ({
  type: 'SetWebhookUrl',
  ...KEY,
  url,
  atMs: Date.parse('2026-09-05T00:00:00Z'),
  newSecret: SECRET,
});

describe('an account', () => {
  test('is opened once under its name', () => {
    given().when(open('Harbour Freight')).thenEvents(opened());
    given(opened()).when(open('Harbour Freight')).thenUnchanged();
    given(opened())
      .when(open('Other'))
      .thenRefused(/open under the name Harbour Freight/);
    given()
      .when(open('  '))
      .thenRefused(/needs a name/);
  });

  test('is renamed', () => {
    const rename = (name: string) => ({ type: 'RenameAccount', accountId: 7, name }) as const;
    const renamed = { type: 'AccountRenamed', data: { ...account, name: 'Other' } } as const;
    given(opened()).when(rename('Other')).thenEvents(renamed);
    given(opened(), renamed).when(rename('Other')).thenUnchanged();
    given(opened(), renamed).when(open('Other')).thenUnchanged();
    given(opened())
      .when(rename(' '))
      .thenRefused(/needs a name/);
  });

  test('is closed with its integration and the keys that are on switched off before', () => {
    const reason = 'contract ended';
    const close = { type: 'CloseAccount', accountId: 7, reason } as const;
    const closed = { type: 'AccountClosed', data: { ...account, reason } } as const;
    const on = { type: 'IntegrationEnabled', data: account } as const;
    const other = keyIssued({ prefix: 'klmnopqrst' });
    given(opened()).when(close).thenEvents(closed);
    given(opened(), on, keyIssued(), other, onKey('KeySwitchedOff'))
      .when(close)
      .thenEvents(
        { type: 'IntegrationDisabled', data: { ...account, reason } },
        { type: 'KeySwitchedOff', data: { ...account, prefix: 'klmnopqrst', reason } },
        closed,
      );
    given(opened(), closed).when(close).thenUnchanged();
  });

  test('takes no change while it is closed but its reopening, which switches nothing on', () => {
    const reason = 'contract ended';
    const history = [
      opened(),
      groupAdded(),
      keyIssued(),
      webhookSet(),
      onKey('KeySwitchedOff'),
      { type: 'AccountClosed', data: { ...account, reason } },
    ] as const;
    const commands: AccountCommand[] = [
      open('Harbour Freight'),
      { type: 'RenameAccount', accountId: 7, name: 'Other' },
      { type: 'SetContacts', accountId: 7, emails: [] },
      { type: 'EnableIntegration', accountId: 7 },
      { type: 'DisableIntegration', accountId: 7 },
      setProfile(FROM, TO),
      { type: 'SetCorporateGroup', accountId: 7, groupId: 3, name: 'Depots' },
      setCorporate('North Depot'),
      issue({ prefix: 'klmnopqrst' }),
      { type: 'SwitchKeyOff', ...KEY },
      { type: 'SwitchKeyOn', ...KEY },
      setUrl('https://example.com/'),
      { type: 'RemoveWebhook', ...KEY },
      { type: 'EnableWebhook', ...KEY },
      { type: 'RequestRedelivery', ...KEY, deliveryIds: ['x'], sinceMs: null, untilMs: null, force: false },
    ];
    for (const command of commands)
      given(...history)
        .when(command)
        .thenRefused(/^account 7 is closed \(contract ended\): run fuel account reopen 7 --reason … first$/);
    const rewrapped = { ...SECRET, master_key_id: 'other' };
    given(...history)
      .when({ type: 'RewrapWebhookSecret', ...KEY, secret: rewrapped })
      .thenEvents({ type: 'WebhookSecretRewrapped', data: { ...key, secret: rewrapped } });
    const reopen = { type: 'ReopenAccount', accountId: 7, reason: 'renewed' } as const;
    const reopened = { type: 'AccountReopened', data: { ...account, reason: 'renewed' } } as const;
    given(...history)
      .when(reopen)
      .thenEvents(reopened);
    given(...history, reopened)
      .when(reopen)
      .thenUnchanged();
    given(...history, reopened)
      .when({ type: 'SwitchKeyOn', ...KEY })
      .thenEvents(onKey('KeySwitchedOn'));
  });

  test('must be open for every other command, and the reason says how', () => {
    const commands: AccountCommand[] = [
      { type: 'SetContacts', accountId: 7, emails: [] },
      { type: 'EnableIntegration', accountId: 7 },
      { type: 'DisableIntegration', accountId: 7 },
      setProfile(FROM, TO),
      { type: 'SetCorporateGroup', accountId: 7, groupId: 3, name: 'Depots' },
      setCorporate('North Depot'),
      issue(),
      { type: 'SwitchKeyOff', ...KEY },
      { type: 'SwitchKeyOn', ...KEY },
      { type: 'SetKeyAllowList', ...KEY, allowList: [] },
      { type: 'SetKeyRateLimit', ...KEY, rateLimit: 1 },
      { type: 'SetKeyDriverMobile', ...KEY, enabled: true },
      setUrl('https://example.com/'),
      { type: 'RemoveWebhook', ...KEY },
    ];
    const reason = 'account 7 is not open: run fuel account open 7 --name …';
    for (const command of commands) expect(decide(command, undefined)).toEqual({ kind: 'refused', reason });
  });

  test('has its contacts replaced', () => {
    const set = { type: 'SetContacts', accountId: 7, emails: ['a@example.com'] } as const;
    const data = { ...account, emails: ['a@example.com'] };
    const done: AccountEvent = { type: 'AccountContactsSet', data };
    given(opened()).when(set).thenEvents(done);
    given(opened(), done).when(set).thenUnchanged();
    const other: AccountEvent = {
      type: 'AccountContactsSet',
      data: { ...account, emails: ['b@example.com'] },
    };
    given(opened(), other).when(set).thenEvents(done);
  });

  test('begins with the integration off, which is switched on and off', () => {
    const on = { type: 'IntegrationEnabled', data: account } as const;
    const off = { type: 'IntegrationDisabled', data: account } as const;
    given(opened()).when({ type: 'DisableIntegration', accountId: 7 }).thenUnchanged();
    given(opened()).when({ type: 'EnableIntegration', accountId: 7 }).thenEvents(on);
    given(opened(), on).when({ type: 'EnableIntegration', accountId: 7 }).thenUnchanged();
    given(opened(), on).when({ type: 'DisableIntegration', accountId: 7 }).thenEvents(off);
  });
});

describe('a charging profile', () => {
  test('set again is renewed or shortened, and unchanged when it is the same', () => {
    given(opened()).when(setProfile(FROM, TO)).thenEvents(profileSet(FROM, TO));
    given(opened(), profileSet(FROM, TO)).when(setProfile(FROM, TO)).thenUnchanged();
    given(opened(), profileSet(FROM, TO)).when(setProfile(FROM, null)).thenEvents(profileSet(FROM, null));
    given(opened(), profileSet('2026-09-01T02:00:00+02:00', TO)).when(setProfile(FROM, TO)).thenUnchanged();
  });

  test('set again with another start is another event', () => {
    const earlier = '2026-08-01T00:00:00.000Z';
    given(opened(), profileSet(earlier, TO)).when(setProfile(FROM, TO)).thenEvents(profileSet(FROM, TO));
  });

  test('needs a name', () => {
    given(opened())
      .when({ ...setProfile(FROM, TO), profile: ' ' } as AccountCommand)
      .thenRefused(/^a charging profile needs a name: give one with --profile$/);
  });

  test('ends after it starts', () => {
    given(opened())
      .when(setProfile(TO, FROM))
      .thenRefused(/must be after its start/);
    given(opened())
      .when(setProfile(FROM, FROM))
      .thenRefused(/must be after its start/);
  });
});

describe('a corporate group', () => {
  const set = (name: string): AccountCommand => ({
    type: 'SetCorporateGroup',
    accountId: 7,
    groupId: 3,
    name,
  });

  test('is added, then renamed', () => {
    const renamed = { ...account, corporate_group_id: 3, name: 'Yards' };
    given(opened()).when(set('Depots')).thenEvents(groupAdded());
    given(opened(), groupAdded()).when(set('Depots')).thenUnchanged();
    given(opened(), groupAdded())
      .when(set('Yards'))
      .thenEvents({ type: 'CorporateGroupRenamed', data: renamed });
  });
});

test('a corporate group and a corporate need a name', () => {
  given(opened())
    .when({ type: 'SetCorporateGroup', accountId: 7, groupId: 3, name: '' })
    .thenRefused(/^a corporate group needs a name: give one with --name$/);
  given(opened())
    .when(setCorporate('\t'))
    .thenRefused(/^a corporate needs a name: give one with --name$/);
});

describe('a corporate', () => {
  const corporate = { ...account, corporate_id: 31 };
  const renamed = { type: 'CorporateRenamed', data: { ...corporate, name: 'South' } } as const;
  const moved = (groupId: number | null) =>
    ({ type: 'CorporateMoved', data: { ...corporate, corporate_group_id: groupId } }) as const;

  test('is added in a group, or in none where none is given', () => {
    given(opened()).when(setCorporate('North Depot')).thenEvents(corporateAdded(null));
    given(opened(), groupAdded()).when(setCorporate('North Depot', 3)).thenEvents(corporateAdded(3));
  });

  test('keeps its group where none is given', () => {
    given(opened(), groupAdded(), corporateAdded(3)).when(setCorporate('North Depot')).thenUnchanged();
    given(opened(), groupAdded(), corporateAdded(3)).when(setCorporate('South')).thenEvents(renamed);
  });

  test('is renamed and moved by one command', () => {
    const history = [opened(), groupAdded(), corporateAdded(3)];
    given(...history)
      .when(setCorporate('South', null))
      .thenEvents(renamed, moved(null));
    given(...history)
      .when(setCorporate('North Depot', null))
      .thenEvents(moved(null));
  });

  test('goes into known groups only', () => {
    const unknown = /account 7 has no corporate group 4: run fuel account group 7 4/;
    given(opened(), groupAdded()).when(setCorporate('North Depot', 4)).thenRefused(unknown);
    given(opened(), groupAdded(), corporateAdded(3)).when(setCorporate('South', 4)).thenRefused(unknown);
  });
});

describe('a key', () => {
  const production = keyIssued({
    environment: 'production',
    label: 'ERP',
    secret_sha256: 'ff'.repeat(32),
    allow_list: ['203.0.113.0/24'],
    driver_mobile: true,
  });

  test('is issued under a prefix of its own', () => {
    given(opened()).when(issue()).thenEvents(production);
    given(opened(), production)
      .when(issue())
      .thenRefused(/has a key abcdefghij already/);
  });

  test('for production always has an allow-list, one for staging need not', () => {
    const set = (allowList: string[]): AccountCommand => ({ type: 'SetKeyAllowList', ...KEY, allowList });
    given(opened())
      .when(issue({ allowList: [] }))
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
      .when(issue({ rateLimit }))
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
    const reason = /account 7 has no key abcdefghij: run fuel key list --account 7/;
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
    given(opened(), keyIssued()).when(setUrl(url)).thenEvents(webhookSet({ set_at }));
  });

  test('set again with the same URL is unchanged', () => {
    given(opened(), keyIssued(), webhookSet()).when(setUrl(url)).thenUnchanged();
  });

  test('keeps its secret and its set time when the URL is changed', () => {
    given(opened(), keyIssued(), webhookSet())
      .when(setUrl(other))
      .thenEvents(webhookSet({ url: other, secret: null }));
  });

  test('removed and set again has a new set time and keeps its secret', () => {
    given(opened(), keyIssued(), webhookSet(), onKey('WebhookRemoved'))
      .when(setUrl(url))
      .thenEvents(webhookSet({ set_at: '2026-09-05T00:00:00.000Z', secret: null }));
  });

  test('is removed once', () => {
    const remove = { type: 'RemoveWebhook', ...KEY } as const;
    given(opened(), keyIssued(), webhookSet()).when(remove).thenEvents(onKey('WebhookRemoved'));
    given(opened(), keyIssued()).when(remove).thenUnchanged();
  });
});

describe('a text that a command is given', () => {
  const x = (count: number): string => 'x'.repeat(count);
  const withText: readonly ((text: string) => AccountCommand)[] = [
    (name) => setCorporate(name),
    (name) => ({ type: 'SetCorporateGroup', accountId: 7, groupId: 3, name }),
    (text) => ({ type: 'SetContacts', accountId: 7, emails: ['a@example.com', text] }),
    (profile) => ({ type: 'SetChargingProfile', accountId: 7, profile, fromMs: 0, toMs: null }),
    (label) => issue({ label }),
  ];

  test('has at most 1,000 characters', () => {
    const tooLong = 'a text must have at most 1000 characters';
    for (const command of withText) {
      given(opened())
        .when(command(x(1_001)))
        .thenRefused(new RegExp(`^${tooLong}$`));
      expect(decide(command(x(1_000)), foldAccount([{ event: opened(), atMs: 0 }]))).toMatchObject({
        kind: 'events',
      });
    }
    expect(decide(open(x(1_000)), undefined)).toMatchObject({ kind: 'events' });
    expect(decide(open(x(1_001)), undefined)).toEqual({ kind: 'refused', reason: tooLong });
  });
});
