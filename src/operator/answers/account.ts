import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Directory } from '../../accounts/directory/fold/directory.ts';
import type { AccountState, DirectoryAccount } from '../../accounts/directory/fold/directory-entry.ts';
import { type PackedAccount, unpackAccount } from '../../accounts/directory/fold/packed-account.ts';
import { type Account, profileAccess } from '../../domain/account.ts';
import type { Environment } from '../../domain/account-events.ts';
import { formatDateTime } from '../../domain/values/date-time.ts';
import { searchable } from '../../domain/values/search-text.ts';
import { type Mark, state } from '../print/document.ts';
import { accessAnswer } from './access.ts';
import { keyAnswer } from './key.ts';
import { webhookState } from './webhook.ts';

const WORST_FIRST = ['disabled', 'active'] as const;
/** How long the event loop may wait for its turn. */
const MAX_SLICE_MS = 1;
const FORGET_AFTER_MS = 15 * 60_000;

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

interface Indexed {
  /** As `searchable`. */
  readonly name: string;
  readonly isClosed: boolean;
  /** True if notices about the account's webhooks are mailed to somebody of the customer. */
  readonly hasContact: boolean;
  /** In the order in which the keys were issued. */
  readonly webhooks: readonly ListedWebhook[];
}

interface Listed extends Indexed {
  readonly id: number;
  readonly isUnreadable: boolean;
}

/** All accounts and webhooks, as checks count them and the console's lists sort them. */
export type AccountLists = ReturnType<typeof listsOf>;

/**
 * Returns a function that lists all accounts. It unpacks an account when it first sees it and after each change, reads
 * nothing between two calls, and forgets everything when it has not been called for a while.
 */
export function accountLists({
  directory,
  environment,
}: {
  readonly directory: Directory;
  readonly environment: Environment;
}): () => Promise<AccountLists> {
  /** By the packed account, which each change replaces. */
  let known = new WeakMap<PackedAccount, Indexed>();
  let last: { readonly changes: number; readonly lists: AccountLists } | undefined;
  const forgetting = setTimeout(() => {
    known = new WeakMap();
    last = undefined;
  }, FORGET_AFTER_MS).unref();
  const indexOf = ({ id, packed }: AccountState): Indexed => {
    if (packed === undefined) return { name: '', isClosed: false, hasContact: false, webhooks: [] };
    const index = known.get(packed) ?? indexed(id, packed, environment);
    known.set(packed, index);
    return index;
  };
  return async () => {
    forgetting.refresh();
    const { changes } = directory;
    if (last?.changes === changes) return last.lists;
    const accounts: Listed[] = [];
    let sinceMs = performance.now();
    for (const state of directory.states()) {
      accounts.push({ id: state.id, isUnreadable: state.unreadable !== null, ...indexOf(state) });
      if (performance.now() - sinceMs < MAX_SLICE_MS) continue;
      await nextTurn();
      sinceMs = performance.now();
    }
    last = { changes, lists: listsOf(accounts.sort((a, b) => a.id - b.id)) };
    return last.lists;
  };
}

/** Unpacks the account itself, because the directory keeps what it unpacks for requests. */
function indexed(accountId: number, packed: PackedAccount, environment: Environment): Indexed {
  const { name, closed, emails, keys } = unpackAccount(packed);
  const webhooks = [...keys.values()].flatMap(({ prefix, active, webhook, environment: of }) =>
    !active || webhook === null || of !== environment
      ? []
      : [{ accountId, prefix, disabledAtMs: webhook.disabled?.sinceMs ?? null }],
  );
  return { name: searchable(name), isClosed: closed !== null, hasContact: emails.length > 0, webhooks };
}

function listsOf(accounts: readonly Listed[]) {
  const webhooks = accounts.flatMap((account) => account.webhooks);
  const disabled = webhooks.filter(({ disabledAtMs }) => disabledAtMs !== null);
  return {
    /** By id. */
    accounts,
    unreadable: accounts.filter(({ isUnreadable }) => isUnreadable).map(({ id }) => id),
    /** By account. */
    webhooks,
    /** Webhooks that are switched off, the latest first. */
    disabled: disabled.sort((a, b) => (b.disabledAtMs ?? 0) - (a.disabledAtMs ?? 0)),
  };
}
