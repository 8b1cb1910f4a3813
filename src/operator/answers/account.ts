import type { StoredAccount } from '../../accounts/rows/stored-account.ts';
import { type Account, profileAccess } from '../../domain/account.ts';
import { dateTimeOrNull, formatDateTime } from '../../domain/values/date-time.ts';
import { type Mark, state } from '../print/document.ts';
import { accessAnswer } from './access.ts';
import { keyAnswer } from './key.ts';
import { webhookState } from './webhook.ts';

const WORST_FIRST = ['disabled', 'active'] as const;

/** An account in a list: whether it has access now, its keys and their webhooks. */
export function accountLine({ id, account, unreadable }: Entry, nowMs: number) {
  const keys = [...(account?.keys.values() ?? [])];
  const states = keys.filter(({ active }) => active).map(({ webhook }) => webhookState(webhook).state);
  return {
    id,
    name: account?.name ?? null,
    closed: account?.closed ? formatDateTime(account.closed.sinceMs) : null,
    integration: account?.integration.enabled ?? null,
    charging_profile_active: account !== undefined && profileAccess(account, nowMs).active,
    ...accessAnswer(account, nowMs),
    /** The number of keys that are on. */
    keys: account === undefined ? null : states.length,
    webhooks: account === undefined ? null : states.filter((name) => name !== 'none').length,
    webhook_state:
      account === undefined ? null : (WORST_FIRST.find((name) => states.includes(name)) ?? 'none'),
    unreadable: unreadable?.reason ?? null,
  };
}

/** The longest name, and what a date has, in a line that fits into 100 columns. */
const MAX_NAME = 24;
const DATE_LENGTH = 'YYYY-MM-DD'.length;

/** A line for people: whether the account has access, and the states of its webhooks, the worst first. */
export function accountShown({ account }: Entry, line: ReturnType<typeof accountLine>, nowMs: number) {
  const { id, name, access_until: until, keys } = line;
  const active = [...(account?.keys.values() ?? [])].filter((key) => key.active);
  const webhooks = WORST_FIRST.flatMap((state) => {
    const count = active.filter(({ webhook }) => webhookState(webhook).state === state).length;
    return count === 0 ? [] : [`${count} ${state}`];
  });
  return {
    id,
    name: name !== null && name.length > MAX_NAME ? `${name.slice(0, MAX_NAME - 1)}…` : name,
    access: line.access ? 'open' : `no: ${whyClosed(account, nowMs)}`,
    keys,
    webhooks: webhooks.join(', ') || 'none',
    until: until === null ? null : until.slice(0, DATE_LENGTH),
  };
}

/** Says in a few words why an account has no access. */
function whyClosed(account: Account | undefined, nowMs: number): string {
  if (account === undefined) return 'unreadable';
  if (account.closed !== null) return 'closed';
  if (!account.integration.enabled) return 'integration off';
  const profile = profileAccess(account, nowMs);
  const day = (ms: number): string => formatDateTime(ms).slice(0, DATE_LENGTH);
  if (!profile.active && profile.startsAtMs !== undefined) return `profile from ${day(profile.startsAtMs)}`;
  return profile.sinceMs === undefined ? 'no profile' : `profile ended ${day(profile.sinceMs)}`;
}

type Entry = Pick<StoredAccount, 'id' | 'account' | 'unreadable'>;

/** Says in a word if requests of the account are answered now. */
export function accountState({ access, closed, unreadable }: ReturnType<typeof accountLine>): Mark {
  if (unreadable !== null) return state('unreadable');
  if (closed !== null) return state('closed');
  return state(access ? 'access' : 'no access');
}

/** An account with everything that belongs to it. If it can't be read, only its id and the reason. */
export function accountAnswer({ id, account, unreadable }: Entry, nowMs: number) {
  if (account === undefined) return { id, unreadable };
  const keys = [...account.keys.values()].map((key) => keyAnswer(id, key));
  return { ...accountSummary(account), ...accessAnswer(account, nowMs), keys, unreadable };
}

/** An account as commands print it that change it. */
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
      to: dateTimeOrNull(toMs),
    })),
    groups: [...account.groups].map(([group, of]) => ({ id: group, name: of.name })),
    corporates: [...account.corporates].map(([corporate, of]) => ({
      id: corporate,
      name: of.name,
      group: of.groupId,
    })),
  };
}
