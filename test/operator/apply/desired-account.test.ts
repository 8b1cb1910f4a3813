import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import {
  type DesiredAccount,
  decideDesired,
  faultsOfDesired,
} from '../../../src/operator/apply/desired-account.ts';
import { corporateAdded, groupAdded, opened, profileSet } from '../../support/accounts/account-samples.ts';
import { desiredAccounts } from '../../support/accounts/desired-accounts.ts';
import { evolve, foldAccount } from '../../support/accounts/evolve.ts';

const FROM = '2026-09-01T00:00:00.000Z';
const TO = '2027-09-01T00:00:00.000Z';

const fold = (history: readonly AccountEvent[]) =>
  foldAccount(history.map((event) => ({ event, atMs: 1_000 })));
const wanted = (history: readonly AccountEvent[], desired: Omit<DesiredAccount, 'account_id'>) => {
  const decision = decideDesired({ account_id: 7, ...desired }, fold(history), 2_000);
  return decision.kind === 'events' ? { kind: decision.kind, events: decision.events } : decision;
};
const typesOf = (...args: Parameters<typeof wanted>) => {
  const decision = wanted(...args);
  return decision.kind === 'events' ? decision.events.map(({ type }) => type) : decision;
};

describe('an account as it should be', () => {
  test('is opened with everything at once, groups before the corporates in them', () => {
    const desired: Omit<DesiredAccount, 'account_id'> = {
      corporates: [{ id: 31, name: 'North Depot', group_id: 3 }],
      groups: [{ id: 3, name: 'Depots' }],
      profiles: [{ profile: 'standard', from: '2026-09-01T02:00:00+02:00' }],
      contacts: ['it@example.com'],
      integration: 'on',
      name: 'Harbour Freight',
    };
    expect(wanted([], desired)).toEqual({
      kind: 'events',
      events: [
        opened(),
        { type: 'IntegrationEnabled', data: { account_id: 7 } },
        { type: 'AccountContactsSet', data: { account_id: 7, emails: ['it@example.com'] } },
        profileSet(FROM, null),
        groupAdded(),
        corporateAdded(3),
      ],
    });
  });

  const history: AccountEvent[] = [
    opened(),
    { type: 'AccountContactsSet', data: { account_id: 7, emails: ['it@example.com'] } },
    profileSet(FROM, TO),
    groupAdded(),
    corporateAdded(3),
  ];

  test('is renamed where it has another name', () => {
    expect(typesOf(history, { name: 'Other' })).toEqual(['AccountRenamed']);
  });

  test('is refused while it is closed', () => {
    const closed = { type: 'AccountClosed', data: { account_id: 7, reason: 'ended' } } as const;
    expect(wanted([...history, closed], { name: 'Harbour Freight', contacts: [] })).toEqual({
      kind: 'refused',
      reason: 'account 7 is closed (ended). Run `fuel account reopen 7 --reason …` first',
    });
  });

  test('keeps all that is left out, in lists and in their items', () => {
    expect(wanted(history, {})).toEqual({ kind: 'unchanged' });
    const on = [...history, { type: 'IntegrationEnabled', data: { account_id: 7 } } as const];
    expect(wanted(on, { contacts: ['it@example.com'] })).toEqual({ kind: 'unchanged' });
    expect(typesOf(on, { integration: 'off' })).toEqual(['IntegrationDisabled']);
    expect(wanted(history, { profiles: [], groups: [], corporates: [] })).toEqual({ kind: 'unchanged' });
    const items = {
      profiles: [{ profile: 'standard' }],
      groups: [{ id: 3 }],
      corporates: [{ id: 31 }],
    };
    expect(wanted(history, items)).toEqual({ kind: 'unchanged' });
    expect(wanted(history, { profiles: [{ profile: 'standard', to: null }] })).toEqual({
      kind: 'events',
      events: [profileSet(FROM, null)],
    });
    expect(wanted(history, { profiles: [{ profile: 'standard', from: '2026-10-01T00:00:00Z' }] })).toEqual({
      kind: 'events',
      events: [profileSet('2026-10-01T00:00:00.000Z', TO)],
    });
    expect(typesOf(history, { corporates: [{ id: 31, group_id: null }] })).toEqual(['CorporateMoved']);
    expect(typesOf(history, { contacts: [] })).toEqual(['AccountContactsSet']);
  });

  test('is reached by renaming, moving and switching what differs', () => {
    const desired: Omit<DesiredAccount, 'account_id'> = {
      name: 'Harbour Freight',
      integration: 'off',
      contacts: ['it@example.com'],
      groups: [
        { id: 3, name: 'Yards' },
        { id: 4, name: 'New' },
      ],
      corporates: [{ id: 31, name: 'South', group_id: 4 }],
    };
    const types = ['CorporateGroupRenamed', 'CorporateGroupAdded', 'CorporateRenamed', 'CorporateMoved'];
    expect(typesOf(history, desired)).toEqual(types);
  });

  test.each<[string, Omit<DesiredAccount, 'account_id'>, RegExp]>([
    [
      'a group that is not there',
      { corporates: [{ id: 31, group_id: 9 }] },
      /^account 7 has no corporate group 9/,
    ],
    [
      'a new corporate without a name',
      { corporates: [{ id: 32 }] },
      /^corporate 32 is new and needs a name$/,
    ],
    ['a new group without a name', { groups: [{ id: 4 }] }, /^group 4 is new and needs a name$/],
    [
      'a new profile without a start',
      { profiles: [{ profile: 'x', to: TO }] },
      /^profile x is new and needs a from$/,
    ],
    [
      'a profile that ends before it starts',
      { profiles: [{ profile: 'standard', to: FROM }] },
      /must be after its start/,
    ],
  ])('is refused as a whole for %s', (_, desired, reason) => {
    const decision = wanted(history, { integration: 'on', ...desired });
    expect(decision).toEqual({ kind: 'refused', reason: expect.stringMatching(reason) });
  });

  test('is refused with every reason at once', () => {
    const desired = { name: 'Other', groups: [{ id: 4 }], corporates: [{ id: 32 }, { id: 31, group_id: 9 }] };
    expect(wanted(history, desired)).toMatchObject({
      reason: expect.stringMatching(/group 4 is new.*; corporate 32 is new.*; account 7 has no corporate/),
    });
  });

  test('names what its items need where it is not open yet', () => {
    const items = { profiles: [{ profile: 'x' }], groups: [{ id: 4 }], corporates: [{ id: 32 }] };
    expect(wanted([], { name: 'New', ...items })).toEqual({
      kind: 'refused',
      reason:
        'profile x is new and needs a from; group 4 is new and needs a name; corporate 32 is new and needs a name',
    });
  });

  test('needs a name where it is not open', () => {
    const decision = wanted([], { integration: 'on' });
    expect(decision).toMatchObject({
      kind: 'refused',
      reason: expect.stringMatching(/^account 7 is not open. Give it a name/),
    });
  });

  test('is refused where more than 1,000 events would be recorded at once', () => {
    const groups = (count: number) => Array.from({ length: count }, (_, id) => ({ id, name: `${id}` }));
    expect(typesOf([], { name: 'x', groups: groups(999) })).toHaveLength(1_000);
    expect(wanted([], { name: 'x', groups: groups(1_000) })).toMatchObject({
      kind: 'refused',
      reason: expect.stringMatching(
        /^it needs 1001 events and one line records at most 1000: .* several lines$/,
      ),
    });
  });

  test('is as it should be once its events are recorded, and nothing else has changed', () => {
    fc.assert(
      fc.property(desiredAccounts, desiredAccounts, (first, second) => {
        const before = made(undefined, { ...first, name: 'North' });
        const decision = decideDesired({ ...second, name: 'North' }, before, 2_000);
        if (decision.kind === 'refused') return;
        const account = made(before, { ...second, name: 'North' });
        expect(decideDesired({ ...second, name: 'North' }, account, 3_000)).toEqual({ kind: 'unchanged' });
        const named = new Set(second.corporates?.map(({ id }) => id));
        for (const [id, corporate] of before?.corporates ?? []) {
          if (!named.has(id)) expect(account?.corporates.get(id)).toEqual(corporate);
        }
      }),
    );
  });
});

function made(account: ReturnType<typeof fold>, desired: DesiredAccount) {
  const decision = decideDesired(desired, account, 2_000);
  return decision.kind === 'events' ? evolve(account, decision.events, 2_000) : account;
}

describe('a line', () => {
  test.each<[string, unknown, string[]]>([
    ['no id', { name: 'x' }, [expect.stringMatching(/^account_id: must be an integer/)]],
    ['an id as text', { account_id: '7' }, [expect.stringMatching(/^account_id: /)]],
    ['a blank name', { account_id: 7, name: ' ' }, ['name: must be a string that is not blank']],
    [
      'a name too long',
      { account_id: 7, name: 'x'.repeat(1_001) },
      ['name: must have at most 1000 characters'],
    ],
    [
      'a member that is not known',
      { account_id: 7, corporate: [] },
      [
        'corporate: is not a member here (they are account_id, name, integration, contacts, profiles, groups, corporates)',
      ],
    ],
    [
      'a member of an item that is not known',
      { account_id: 7, corporates: [{ id: 1, group: 3 }] },
      ['corporates.0.group: is not a member here (they are id, name, group_id)'],
    ],
    [
      'another state',
      { account_id: 7, integration: true },
      [expect.stringMatching(/^integration: .*"on","off"/)],
    ],
    [
      'no e-mail address',
      { account_id: 7, contacts: ['a@b.c', 'nobody'] },
      ['contacts.1: must be an e-mail address'],
    ],
    [
      'no date-time',
      { account_id: 7, profiles: [{ profile: 'p', from: '2026-01-01' }] },
      [expect.stringMatching(/^profiles.0.from: must be an ISO 8601/)],
    ],
    ['a list that is none', { account_id: 7, groups: {} }, [expect.stringMatching(/^groups: /)]],
    ['a null name', { account_id: 7, name: null }, ['name: must be a string that is not blank']],
    [
      'items that are there twice',
      {
        account_id: 7,
        profiles: [{ profile: 'p' }, { profile: 'p' }],
        groups: [{ id: 3 }, { id: 4 }, { id: 3 }, { id: 3 }],
        corporates: [{ id: 5 }, { id: 5 }],
      },
      ['profiles: p is there twice', 'groups: 3 is there twice', 'corporates: 5 is there twice'],
    ],
    [
      'several faults',
      { account_id: -1, name: '' },
      [expect.stringMatching(/^account_id/), expect.stringMatching(/^name/)],
    ],
  ])('with %s names the fault', (_, members, faults) => {
    expect(faultsOfDesired(members)).toEqual(faults);
  });

  test('of the whole form has none', () => {
    const line = {
      account_id: 7,
      name: 'x'.repeat(1_000),
      integration: 'on',
      contacts: ['a@example.com'],
      profiles: [{ profile: 'p', from: FROM, to: null }],
      groups: [{ id: 3, name: 'Depots' }],
      corporates: [
        { id: 3, name: 'North', group_id: 3 },
        { id: 4, name: 'South', group_id: null },
      ],
    };
    expect(faultsOfDesired(line)).toEqual([]);
    expect(faultsOfDesired({ account_id: 0 })).toEqual([]);
  });
});
