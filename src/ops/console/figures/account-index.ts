import { setImmediate as nextTurn } from 'node:timers/promises';
import type { DirectoryAccount } from '../../../../projections/directory.ts';
import type { AccountKey } from '../../../domain/account.ts';
import type { Environment } from '../../../domain/account-events.ts';
import { Fresh } from './known.ts';
import type { ConsoleParts } from './parts.ts';

/** Accounts that are looked at before the event loop gets its turn. */
const AT_ONCE = 1_000;
const MAX_AGE_MS = 2_000;
const FORGET_AFTER_MS = 60_000;

export interface WebhookRef {
  readonly accountId: number;
  readonly prefix: string;
}

interface NamedAccount {
  readonly id: number;
  /** In lower case, for the search. */
  readonly name: string;
}

/** What the lists of the console are sorted and paged by. */
export interface AccountLists {
  /** By id. */
  readonly accounts: readonly NamedAccount[];
  readonly closed: readonly number[];
  /** Of active keys of this environment, by account and in the order of their issue. */
  readonly webhooks: readonly WebhookRef[];
  /** Those of them that are switched off, the latest first. */
  readonly disabled: readonly WebhookRef[];
}

/** The directory in order. It is read again only when accounts have changed, and is forgotten when nobody looks. */
export class AccountIndex {
  readonly #parts: Pick<ConsoleParts, 'directory' | 'environment' | 'clock'>;
  readonly #fresh: Fresh<AccountLists>;
  #read: { readonly changes: number; readonly lists: AccountLists } | undefined;
  #forgetting: NodeJS.Timeout | undefined;

  constructor(parts: Pick<ConsoleParts, 'directory' | 'environment' | 'clock'>) {
    this.#parts = parts;
    const now = (): number => parts.clock.now();
    this.#fresh = new Fresh(() => this.#lists(), { maxAgeMs: MAX_AGE_MS, now });
  }

  lists(): Promise<AccountLists> {
    clearTimeout(this.#forgetting);
    this.#forgetting = setTimeout(() => {
      this.#read = undefined;
    }, FORGET_AFTER_MS).unref();
    return this.#fresh.get();
  }

  async #lists(): Promise<AccountLists> {
    const { directory, environment } = this.#parts;
    const { changes } = directory;
    if (this.#read?.changes === changes) return this.#read.lists;
    const lists = await readLists(directory.accounts(), environment);
    this.#read = { changes, lists };
    return lists;
  }
}

async function readLists(all: Iterable<DirectoryAccount>, environment: Environment): Promise<AccountLists> {
  const accounts: NamedAccount[] = [];
  const closed: number[] = [];
  const keysOf = new Map<number, AccountKey[]>();
  let seen = 0;
  for (const { id, account, unreadable } of all) {
    accounts.push({ id, name: account?.name.toLowerCase() ?? '' });
    if (unreadable !== null) closed.push(id);
    const keys = [...(account?.keys.values() ?? [])].filter((key) => hasWebhook(key, environment));
    if (keys.length > 0) keysOf.set(id, keys);
    if (++seen % AT_ONCE === 0) await nextTurn();
  }
  const inOrder = [...keysOf].sort(([a], [b]) => a - b);
  await nextTurn();
  const webhooks = inOrder.flatMap(([accountId, keys]) => keys.map((key) => ({ accountId, key })));
  const refOf = ({ accountId, key }: (typeof webhooks)[number]) => ({ accountId, prefix: key.prefix });
  const disabledAt = ({ key }: (typeof webhooks)[number]): number => key.webhook?.disabled?.sinceMs ?? 0;
  return {
    accounts: accounts.sort((a, b) => a.id - b.id),
    closed: closed.sort((a, b) => a - b),
    webhooks: webhooks.map(refOf),
    disabled: webhooks
      .filter(({ key }) => key.webhook?.disabled != null)
      .sort((a, b) => disabledAt(b) - disabledAt(a))
      .map(refOf),
  };
}

function hasWebhook({ active, webhook, environment }: AccountKey, of: Environment): boolean {
  return active && webhook !== null && environment === of;
}

/** Where a sorted list continues after an item: the place of the first one that `isAfter`. */
export function firstAfter<T>(list: readonly T[], isAfter: (item: T) => boolean): number {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const item = list[middle];
    if (item !== undefined && isAfter(item)) high = middle;
    else low = middle + 1;
  }
  return low;
}
