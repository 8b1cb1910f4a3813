import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Directory } from '../../accounts/directory/fold/directory.ts';
import type { AccountState, DirectoryAccount } from '../../accounts/directory/fold/directory-entry.ts';
import { unpackAccount } from '../../accounts/directory/fold/packed-account.ts';
import { type Account, profileAccess } from '../../domain/account.ts';
import type { Environment } from '../../domain/account-events.ts';
import { formatDateTime } from '../../domain/values/date-time.ts';
import { type Mark, state } from '../print/document.ts';
import { searchable } from '../search/search-text.ts';
import { accessAnswer } from './access.ts';
import { keyAnswer } from './key.ts';
import { webhookState } from './webhook.ts';

const WORST_FIRST = ['disabled', 'active'] as const;
/** How long the event loop may wait for its turn. */
const MAX_SLICE_MS = 1;

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

type Entry = Pick<DirectoryAccount, 'id' | 'account' | 'unreadable'>;

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

/** A webhook of an active key of this environment. */
export interface ListedWebhook {
  readonly accountId: number;
  readonly prefix: string;
  readonly disabledAtMs: number | null;
}

interface Listed {
  readonly id: number;
  /** Why nothing of it is served; `null` if it can be read. */
  readonly unreadable: string | null;
  /** As `searchable`. */
  readonly name: string;
  readonly isClosed: boolean;
  /** True if notices about the account's webhooks are mailed to somebody of the customer. */
  readonly hasContact: boolean;
  /** In the order in which the keys were issued. */
  readonly webhooks: readonly ListedWebhook[];
}

/** All accounts and webhooks, as checks count them and the console's lists sort them. */
export type AccountLists = ReturnType<typeof listsOf>;

/** Lists all accounts. It lets others take their turn, since unpacking many accounts takes seconds. */
export async function accountLists({
  directory,
  environment,
}: {
  readonly directory: Directory;
  readonly environment: Environment;
}): Promise<AccountLists> {
  const accounts: Listed[] = [];
  let sinceMs = performance.now();
  for (const state of directory.states()) {
    accounts.push(listed(state, environment));
    if (performance.now() - sinceMs < MAX_SLICE_MS) continue;
    await nextTurn();
    sinceMs = performance.now();
  }
  return listsOf(accounts.sort((a, b) => a.id - b.id));
}

/** Unpacks the account itself, because the directory keeps what it unpacks for requests. */
function listed({ id, packed, unreadable: fault }: AccountState, environment: Environment): Listed {
  const unreadable = fault?.reason ?? null;
  if (packed === undefined)
    return { id, unreadable, name: '', isClosed: false, hasContact: false, webhooks: [] };
  const { name, closed, emails, keys } = unpackAccount(packed);
  const webhooks = [...keys.values()].flatMap(({ prefix, active, webhook, environment: of }) =>
    !active || webhook === null || of !== environment
      ? []
      : [{ accountId: id, prefix, disabledAtMs: webhook.disabled?.sinceMs ?? null }],
  );
  const hasContact = emails.length > 0;
  return { id, unreadable, name: searchable(name), isClosed: closed !== null, hasContact, webhooks };
}

function listsOf(accounts: readonly Listed[]) {
  const webhooks = accounts.flatMap((account) => account.webhooks);
  const disabled = webhooks.filter(({ disabledAtMs }) => disabledAtMs !== null);
  return {
    /** By id. */
    accounts,
    unreadable: accounts.flatMap(({ id, unreadable: reason }) => (reason === null ? [] : [{ id, reason }])),
    /** By account. */
    webhooks,
    /** Webhooks that are switched off, the latest first. */
    disabled: disabled.sort((a, b) => (b.disabledAtMs ?? 0) - (a.disabledAtMs ?? 0)),
  };
}
