import { setImmediate as nextTurn } from 'node:timers/promises';
import type { AccountState } from '../../../accounts/directory/fold/directory-entry.ts';
import { type PackedAccount, unpackAccount } from '../../../accounts/directory/fold/packed-account.ts';
import { searchable } from '../../../domain/values/search-text.ts';
import type { ConsoleParts } from './console-parts.ts';

/** Of the event loop, before it gets its turn. */
const MAX_SLICE_MS = 1;
const FORGET_AFTER_MS = 15 * 60_000;

export interface WebhookRef {
  readonly accountId: number;
  readonly prefix: string;
}

interface Indexed {
  /** As `searchable`. */
  readonly name: string;
  readonly isClosed: boolean;
  /** Webhooks of active keys of this environment, in the order of their issue. */
  readonly webhooks: readonly (WebhookRef & { readonly disabledAtMs: number | null })[];
}

interface Listed extends Indexed {
  readonly id: number;
  readonly isUnreadable: boolean;
}

/** What the lists of the console are sorted and paged by. */
export type AccountLists = ReturnType<typeof listsOf>;

/**
 * Reads the accounts in order. One is unpacked when it was first seen and when it has changed; nothing is read while
 * nobody looks, and all is forgotten some time later.
 */
export function accountLists({
  directory,
  environment,
}: Pick<ConsoleParts, 'directory' | 'environment'>): () => Promise<AccountLists> {
  /** By what was read: a change of the account makes another one. */
  let known = new WeakMap<PackedAccount, Indexed>();
  let last: { readonly changes: number; readonly lists: AccountLists } | undefined;
  const forgetting = setTimeout(() => {
    known = new WeakMap();
    last = undefined;
  }, FORGET_AFTER_MS).unref();
  const indexOf = ({ id, packed }: AccountState): Indexed => {
    if (packed === undefined) return { name: '', isClosed: false, webhooks: [] };
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

/** Reads the packed text: the directory keeps unpacked what requests use. */
function indexed(accountId: number, packed: PackedAccount, environment: string): Indexed {
  const { name, closed, keys } = unpackAccount(packed);
  const webhooks = [...keys.values()].flatMap(({ prefix, active, webhook, environment: of }) =>
    !active || webhook === null || of !== environment
      ? []
      : [{ accountId, prefix, disabledAtMs: webhook.disabled?.sinceMs ?? null }],
  );
  return { name: searchable(name), isClosed: closed !== null, webhooks };
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
    /** Those of them that are switched off, the latest first. */
    disabled: disabled.sort((a, b) => (b.disabledAtMs ?? 0) - (a.disabledAtMs ?? 0)),
  };
}
