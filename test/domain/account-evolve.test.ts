import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Account } from '../../src/domain/account.ts';
import { type AccountCommand, decide } from '../../src/domain/account-commands.ts';
import { type AccountEvent, type AccountEventType, accountEvents } from '../../src/domain/account-events.ts';
import { EventOrderFault } from '../../src/domain/account-evolve.ts';
import {
  corporateAdded,
  groupAdded,
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
import { commandSequences } from '../support/accounts/arbitrary-commands.ts';
import { evolve, foldAccount } from '../support/accounts/evolve.ts';

const key = { account_id: 7, prefix: PREFIX };
const redelivery = { delivery_ids: null, since: null, until: null, force: false };
const fold = (...events: readonly AccountEvent[]) =>
  foldAccount(events.map((event) => ({ event, atMs: 5_000 })));

describe('the webhook of a key', () => {
  const webhookOf = (...events: readonly AccountEvent[]) =>
    fold(opened(), keyIssued(), ...events)?.keys.get(PREFIX)?.webhook;

  test('is disabled since the event was recorded, and enabled again', () => {
    const disabled = { reason: '50 failed', sinceMs: 5_000 };
    expect(webhookOf(webhookSet(), onKey('WebhookDisabled'))?.disabled).toEqual(disabled);
    expect(webhookOf(webhookSet(), onKey('WebhookDisabled'), onKey('WebhookEnabled'))?.disabled).toBeNull();
  });

  test('stays disabled when its URL is changed, not when it is removed and set again', () => {
    const changed = webhookSet({ url: 'https://example.com/other', secret: null });
    expect(webhookOf(webhookSet(), onKey('WebhookDisabled'), changed)?.disabled).not.toBeNull();
    const again = [webhookSet(), onKey('WebhookDisabled'), onKey('WebhookRemoved'), changed];
    expect(webhookOf(...again)?.disabled).toBeNull();
  });

  test('may be disabled or enabled just after it was removed', () => {
    expect(webhookOf(webhookSet(), onKey('WebhookRemoved'), onKey('WebhookDisabled'))).toBeNull();
    expect(webhookOf(webhookSet(), onKey('WebhookRemoved'), onKey('WebhookEnabled'))).toBeNull();
  });

  test('keeps its rate when its URL is changed, until it is removed', () => {
    const changed = webhookSet({ url: 'https://example.com/other', secret: null });
    expect(webhookOf(webhookSet())?.ratePerSecond).toBeNull();
    expect(webhookOf(webhookSet(), rateSet(20), changed)?.ratePerSecond).toBe(20);
    expect(webhookOf(webhookSet(), rateSet(20), rateSet(null))?.ratePerSecond).toBeNull();
    const again = [webhookSet(), rateSet(20), onKey('WebhookRemoved'), changed];
    expect(webhookOf(...again)?.ratePerSecond).toBeNull();
  });

  test('leaves its secret behind when it is removed', () => {
    const account = fold(opened(), keyIssued(), webhookSet(), onKey('WebhookRemoved'));
    expect(account?.keys.get(PREFIX)).toMatchObject({ webhook: null, webhookSecret: SECRET });
  });

  test('keeps its state when its secret is rewrapped, also once it is removed', () => {
    const disabled = [opened(), keyIssued(), webhookSet(), onKey('WebhookDisabled')];
    const before = fold(...disabled)?.keys.get(PREFIX);
    const after = fold(...disabled, secretRewrapped())?.keys.get(PREFIX);
    expect(after).toEqual({ ...before, webhookSecret: REWRAPPED });
    const removed = fold(...disabled, onKey('WebhookRemoved'), secretRewrapped())?.keys.get(PREFIX);
    expect(removed).toMatchObject({ webhook: null, webhookSecret: REWRAPPED });
  });
});

test('every type of account event can follow', () => {
  const failures = { failed_in_a_row: 1, failing_since: null, last_answers: [] };
  const events: AccountEvent[] = [
    opened(),
    { type: 'AccountRenamed', data: { account_id: 7, name: 'Other' } },
    { type: 'AccountClosed', data: { account_id: 7, reason: 'ended' } },
    { type: 'AccountReopened', data: { account_id: 7, reason: 'renewed' } },
    { type: 'AccountContactsSet', data: { account_id: 7, emails: ['a@example.com'] } },
    { type: 'IntegrationEnabled', data: { account_id: 7 } },
    { type: 'IntegrationDisabled', data: { account_id: 7 } },
    {
      type: 'ChargingProfileSet',
      data: { account_id: 7, profile: 'standard', from: '2026-09-01T00:00:00Z', to: null },
    },
    groupAdded(),
    { type: 'CorporateGroupRenamed', data: { account_id: 7, corporate_group_id: 3, name: 'Yards' } },
    corporateAdded(),
    { type: 'CorporateRenamed', data: { account_id: 7, corporate_id: 31, name: 'South' } },
    { type: 'CorporateMoved', data: { account_id: 7, corporate_id: 31, corporate_group_id: 3 } },
    keyIssued(),
    onKey('KeySwitchedOff'),
    onKey('KeySwitchedOn'),
    { type: 'KeyAllowListSet', data: { ...key, allow_list: ['::1'] } },
    { type: 'KeyRateLimitSet', data: { ...key, rate_limit: 9 } },
    { type: 'KeyDriverMobileSet', data: { ...key, enabled: true } },
    webhookSet(),
    secretRewrapped(),
    rateSet(),
    { type: 'WebhookTestRequested', data: { ...key, delivery_id: 'd' } },
    { type: 'WebhookFailing', data: { ...key, ...failures } },
    onKey('WebhookDisabled'),
    onKey('WebhookEnabled'),
    { type: 'RedeliveryRequested', data: { ...key, ...redelivery } },
    { type: 'RedeliveryCancelled', data: key },
    onKey('WebhookRemoved'),
  ];
  expect(new Set(events.map((event) => event.type))).toEqual(new Set(Object.keys(accountEvents)));
  expect(fold(...events)).toEqual({
    id: 7,
    name: 'Other',
    closed: null,
    emails: ['a@example.com'],
    integration: { enabled: false, sinceMs: 5_000 },
    profiles: new Map([['standard', { fromMs: Date.parse('2026-09-01T00:00:00Z'), toMs: null }]]),
    profileChangedAtMs: null,
    groups: new Map([[3, { name: 'Yards' }]]),
    corporates: new Map([[31, { name: 'South', groupId: 3 }]]),
    keys: new Map([
      [
        PREFIX,
        {
          prefix: PREFIX,
          environment: 'staging',
          label: null,
          secretSha256: '00'.repeat(32),
          active: true,
          allowList: ['::1'],
          rateLimit: 9,
          driverMobile: true,
          webhook: null,
          webhookSecret: REWRAPPED,
        },
      ],
    ]),
  });
});

test.each<[string, AccountEvent[], string]>([
  [
    'anything before the account was opened',
    [groupAdded()],
    'CorporateGroupAdded before the account was opened',
  ],
  ['a second opening', [opened(), opened()], 'account 7 was opened before'],
  [
    'another account',
    [opened(), { type: 'IntegrationEnabled', data: { account_id: 8 } }],
    'IntegrationEnabled of account 8 on account 7',
  ],
  [
    'a profile that starts at no date-time',
    [opened(), profileSet('yesterday', null)],
    'yesterday is not a date-time',
  ],
  [
    'a rewrapped secret of a key without one',
    [opened(), keyIssued(), secretRewrapped()],
    `WebhookSecretRewrapped names key ${PREFIX}, which has no webhook secret`,
  ],
  [
    'a group added twice',
    [opened(), groupAdded(), groupAdded()],
    'CorporateGroupAdded repeats what is there already',
  ],
  [
    'the renaming of an unknown group',
    [opened(), { type: 'CorporateGroupRenamed', data: { account_id: 7, corporate_group_id: 3, name: 'x' } }],
    'CorporateGroupRenamed names corporate group 3, which was never added',
  ],
  [
    'a corporate added twice',
    [opened(), corporateAdded(), corporateAdded()],
    'CorporateAdded repeats what is there already',
  ],
  [
    'a corporate in an unknown group',
    [opened(), corporateAdded(3)],
    'CorporateAdded names corporate group 3, which was never added',
  ],
  [
    'the renaming of an unknown corporate',
    [opened(), { type: 'CorporateRenamed', data: { account_id: 7, corporate_id: 31, name: 'x' } }],
    'CorporateRenamed names corporate 31, which was never added',
  ],
  [
    'a move to an unknown group',
    [
      opened(),
      corporateAdded(),
      { type: 'CorporateMoved', data: { account_id: 7, corporate_id: 31, corporate_group_id: 4 } },
    ],
    'CorporateMoved names corporate group 4, which was never added',
  ],
  ['a prefix issued twice', [opened(), keyIssued(), keyIssued()], 'KeyIssued repeats what is there already'],
  ...[
    onKey('KeySwitchedOff'),
    onKey('WebhookFailing'),
    { type: 'WebhookTestRequested', data: { ...key, delivery_id: 'd' } } as const,
    { type: 'RedeliveryRequested', data: { ...key, ...redelivery } } as const,
  ].map((event): [string, AccountEvent[], string] => [
    `${event.type} of a key that was never issued`,
    [opened(), event],
    `${event.type} names key abcdefghij, which was never issued`,
  ]),
  [
    'a webhook without any secret',
    [opened(), keyIssued(), webhookSet({ secret: null })],
    'WebhookUrlSet brings no secret, and key abcdefghij has none',
  ],
])('%s cannot follow', (_, events, reason) => {
  expect(() => fold(...events)).toThrow(new EventOrderFault(reason));
});

test('evolving leaves the account that was given as it is', () => {
  const before = fold(opened(), groupAdded(), keyIssued()) as Account;
  const kept = structuredClone(before);
  for (const event of [corporateAdded(3), webhookSet(), groupAdded(4)]) evolve(before, [event], 1);
  expect(before).toEqual(kept);
});

test('any sequence of commands gives events that fit their schema, can follow, and carry the command out', () => {
  const run = (commands: readonly AccountCommand[]) => {
    let account: Account | undefined;
    const log: { event: AccountEvent; atMs: number }[] = [];
    for (const command of commands) {
      const decision = decide(command, account);
      if (decision.kind !== 'events') continue;
      for (const event of decision.events) {
        expect(accountEvents[event.type as AccountEventType].is(event.data)).toBe(true);
        account = evolve(account, [event], 1_000);
        log.push({ event, atMs: 1_000 });
      }
      const again = decide(command, account);
      expect(again.kind).toBe(command.type === 'IssueKey' ? 'refused' : 'unchanged');
    }
    expect(foldAccount(log)).toEqual(account);
  };
  fc.assert(fc.property(commandSequences, run));
});
