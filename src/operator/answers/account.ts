import type { DirectoryAccount } from '../../accounts/directory/fold/directory-entry.ts';
import { type Account, profileAccess } from '../../domain/account.ts';
import { formatDateTime } from '../../domain/values/date-time.ts';
import { type Mark, state } from '../print/document.ts';
import { accessAnswer } from './access.ts';
import { keyAnswer } from './key.ts';
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

/** Whether its requests are answered now, or why not in a word. */
export function accountState({ access, closed, unreadable }: ReturnType<typeof accountLine>): Mark {
  if (unreadable !== null) return state('unreadable');
  if (closed !== null) return state('closed');
  return state(access ? 'access' : 'no access');
}

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
