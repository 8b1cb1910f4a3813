import type { DirectoryAccount } from '../../accounts/directory/fold/directory-entry.ts';
import { type Account, profileAccess } from '../../domain/account.ts';
import { formatDateTime } from '../../domain/values/date-time.ts';
import { accessAnswer, refusalCells } from './access.ts';
import { type Column, facts, link, type Section, state, table, time } from './columns.ts';
import { KEY_COLUMNS, keyAnswer } from './key.ts';
import { webhookState } from './webhook.ts';

const WORST_FIRST = ['disabled', 'active'] as const;

/** An account in a list: whether it has access now, its keys and their webhooks. */
export function accountLine({ id, account, unreadable }: Listed, nowMs: number) {
  const keys = [...(account?.keys.values() ?? [])];
  const states = keys.filter(({ active }) => active).map(({ webhook }) => webhookState(webhook).state);
  return {
    id,
    name: account?.name ?? null,
    closed: account?.closed ? formatDateTime(account.closed.sinceMs) : null,
    integration: account?.integration.enabled ?? null,
    charging_profile_active: account !== undefined && profileAccess(account, nowMs).active,
    ...accessAnswer(account, nowMs),
    /** Those that are on. */
    keys: account === undefined ? null : states.length,
    webhooks: account === undefined ? null : states.filter((name) => name !== 'none').length,
    webhook_state:
      account === undefined ? null : (WORST_FIRST.find((name) => states.includes(name)) ?? 'none'),
    unreadable: unreadable?.reason ?? null,
  };
}

type Listed = Pick<DirectoryAccount, 'id' | 'account' | 'unreadable'>;
type AccountLine = ReturnType<typeof accountLine>;

/** Whether its requests are answered now, or why not in a word. */
export function accountState({ access, closed, unreadable }: AccountLine) {
  if (unreadable !== null) return state('unreadable');
  if (closed !== null) return state('closed');
  return state(access ? 'access' : 'no access');
}

export const ACCOUNT_COLUMNS: readonly Column<AccountLine>[] = [
  { head: 'Id', width: 8, cell: ({ id }) => link('account', id) },
  { head: 'Name', width: 24, cell: ({ name }) => name ?? '' },
  {
    head: 'Integration',
    width: 11,
    cell: ({ integration }) => (integration === null ? 'unknown' : state(integration ? 'on' : 'off')),
  },
  { head: 'Access', width: 10, cell: accountState },
  {
    head: 'Until, or why not',
    width: 27,
    cell: ({ access_until, no_access_reason, unreadable }) =>
      unreadable ?? no_access_reason ?? time(access_until),
  },
  { head: 'Keys', width: 4, number: true, cell: ({ keys }) => keys ?? 'unknown' },
  {
    head: 'Webhooks, the worst',
    cell: ({ webhooks, webhook_state }) =>
      webhook_state === null || webhook_state === 'none'
        ? (webhooks ?? '')
        : [webhooks ?? '', state(webhook_state)],
  },
];

/** An account with all that belongs to it; only why, where it can't be read. */
export function accountAnswer({ id, account, unreadable }: Listed, nowMs: number) {
  if (account === undefined) return { id, unreadable };
  const keys = [...account.keys.values()].map((key) => keyAnswer(id, key));
  return { ...accountSummary(account), ...accessAnswer(account, nowMs), keys, unreadable };
}

/** What a command that changes an account prints of it. */
export function accountSummary({ id, name, closed, integration, emails, ...account }: Account) {
  return {
    id,
    name,
    closed: closed && { reason: closed.reason, since: formatDateTime(closed.sinceMs) },
    integration: integration.enabled,
    contacts: emails,
    profiles: [...account.profiles].map(([profile, { fromMs, toMs }]) => ({
      profile,
      from: formatDateTime(fromMs),
      to: toMs === null ? null : formatDateTime(toMs),
    })),
    groups: [...account.groups].map(([group, of]) => ({ id: group, name: of.name })),
    corporates: [...account.corporates].map(([corporate, of]) => ({
      id: corporate,
      name: of.name,
      group: of.groupId,
    })),
  };
}

type Summary = ReturnType<typeof accountSummary>;
type AccessAnswer = ReturnType<typeof accessAnswer>;

const FACTS: readonly Column<Summary & AccessAnswer>[] = [
  { head: 'Account', cell: ({ id }) => link('account', id) },
  { head: 'Name', cell: ({ name }) => name },
  {
    head: 'Access',
    cell: ({ access_until: until, no_access_reason: reason, answered }) =>
      answered === null
        ? [state('access'), until === null ? 'open-ended' : ['until', time(until)]]
        : [state('no access'), ...refusalCells({ reason: reason ?? '', answered })],
  },
  {
    head: 'Closed',
    cell: ({ closed }) => (closed === null ? 'no' : ['since', time(closed.since), `: ${closed.reason}`]),
  },
  { head: 'Integration', cell: ({ integration }) => state(integration ? 'on' : 'off') },
  { head: 'Contacts', cell: ({ contacts }) => (contacts.length === 0 ? 'none' : contacts.join(', ')) },
];
const PROFILES: readonly Column<Summary['profiles'][number]>[] = [
  { head: 'Profile', cell: ({ profile }) => profile },
  { head: 'From', cell: ({ from }) => time(from) },
  { head: 'To', cell: ({ to }) => (to === null ? 'open-ended' : time(to)) },
];
const GROUPS: readonly Column<Summary['groups'][number]>[] = [
  { head: 'Id', cell: ({ id }) => id },
  { head: 'Name', cell: ({ name }) => name },
];

export function accountSections(answer: ReturnType<typeof accountAnswer>): Section[] {
  if (!('keys' in answer)) {
    const { position, reason } = answer.unreadable ?? {};
    const why = `the event at ${position} can not be read: ${reason}`;
    return [
      {
        facts: [
          ['Account', link('account', answer.id)],
          ['Unreadable', `nothing of it is served, since ${why}`],
        ],
      },
    ];
  }
  const groups = new Map(answer.groups.map(({ id, name }) => [id, name]));
  const corporates: readonly Column<Summary['corporates'][number]>[] = [
    ...GROUPS,
    { head: 'Group', cell: ({ group }) => (group === null ? 'none' : [group, groups.get(group) ?? '']) },
  ];
  return [
    facts(FACTS, answer),
    table('Charging profiles', PROFILES, {
      of: answer.profiles,
      empty: 'It has no charging profile.',
    }),
    table('Keys', KEY_COLUMNS, {
      of: answer.keys,
      idOf: ({ prefix }) => prefix,
      empty: 'It has no key.',
    }),
    table('Corporate groups', GROUPS, {
      of: answer.groups,
      empty: 'It has no group.',
    }),
    table('Corporates', corporates, {
      of: answer.corporates,
      empty: 'It has no corporate.',
    }),
  ];
}
