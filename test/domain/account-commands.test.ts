import { describe, expect, test } from 'vitest';
import { type AccountCommand, decide } from '../../src/domain/account-commands.ts';
import type { AccountEvent } from '../../src/domain/account-events.ts';
import {
  corporateAdded,
  groupAdded,
  issueKey,
  KEY,
  keyIssued,
  onKey,
  opened,
  PREFIX,
  profileSet,
  SECRET,
  setWebhookUrl,
  webhookSet,
} from '../support/accounts/account-samples.ts';
import { foldAccount } from '../support/accounts/evolve.ts';
import { given } from '../support/accounts/given.ts';

const account = { account_id: 7 };
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
      issueKey({ prefix: 'klmnopqrst' }),
      { type: 'SwitchKeyOff', ...KEY },
      { type: 'SwitchKeyOn', ...KEY },
      setWebhookUrl('https://example.com/'),
      { type: 'RemoveWebhook', ...KEY },
      { type: 'EnableWebhook', ...KEY },
      { type: 'RequestRedelivery', ...KEY, deliveryIds: ['x'], sinceMs: null, untilMs: null, force: false },
    ];
    for (const command of commands)
      given(...history)
        .when(command)
        .thenRefused(
          /^account 7 is closed \(contract ended\)\. Run `fuel account reopen 7 --reason …` first$/,
        );
    const rewrapped = { ...SECRET, master_key_id: 'other' };
    given(...history)
      .when({ type: 'RewrapWebhookSecret', ...KEY, secret: rewrapped })
      .thenEvents({
        type: 'WebhookSecretRewrapped',
        data: { ...account, prefix: PREFIX, secret: rewrapped },
      });
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
      issueKey(),
      { type: 'SwitchKeyOff', ...KEY },
      { type: 'SwitchKeyOn', ...KEY },
      { type: 'SetKeyAllowList', ...KEY, allowList: [] },
      { type: 'SetKeyRateLimit', ...KEY, rateLimit: 1 },
      { type: 'SetKeyDriverMobile', ...KEY, enabled: true },
      setWebhookUrl('https://example.com/'),
      { type: 'RemoveWebhook', ...KEY },
    ];
    const reason = 'account 7 is not open. Run `fuel account open 7 --name …`';
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
      .thenRefused(/^a charging profile needs a name\. Give one with --profile$/);
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
    .thenRefused(/^a corporate group needs a name\. Give one with --name$/);
  given(opened())
    .when(setCorporate('\t'))
    .thenRefused(/^a corporate needs a name\. Give one with --name$/);
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
    const unknown = /account 7 has no corporate group 4\. Run `fuel account group 7 4/;
    given(opened(), groupAdded()).when(setCorporate('North Depot', 4)).thenRefused(unknown);
    given(opened(), groupAdded(), corporateAdded(3)).when(setCorporate('South', 4)).thenRefused(unknown);
  });
});

describe('a text that a command is given', () => {
  const x = (count: number): string => 'x'.repeat(count);
  const withText: readonly ((text: string) => AccountCommand)[] = [
    (name) => setCorporate(name),
    (name) => ({ type: 'SetCorporateGroup', accountId: 7, groupId: 3, name }),
    (text) => ({ type: 'SetContacts', accountId: 7, emails: ['a@example.com', text] }),
    (profile) => ({ type: 'SetChargingProfile', accountId: 7, profile, fromMs: 0, toMs: null }),
    (label) => issueKey({ label }),
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
