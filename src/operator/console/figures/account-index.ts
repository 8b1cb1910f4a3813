import { setImmediate as nextTurn } from 'node:timers/promises';
import type { AccountState } from '../../../accounts/directory/fold/directory-entry.ts';
import { unpackAccount } from '../../../accounts/directory/fold/packed-account.ts';
import type { Environment } from '../../../domain/account-events.ts';
import { Fresh, type Known, known } from './known.ts';
import type { ConsoleParts } from './parts.ts';

/** Accounts that are looked at, and that are unpacked, before the event loop gets its turn: a millisecond each. */
const LOOKED_AT_ONCE = 5_000;
const UNPACKED_AT_ONCE = 100;
const MAX_AGE_MS = 2_000;
/** A first read of a hundred thousand accounts takes seconds: who can do without waits no longer than this. */
const SOON_MS = 200;
const FORGET_AFTER_MS = 15 * 60_000;

export interface WebhookRef {
  readonly accountId: number;
  readonly prefix: string;
}

interface OwnWebhook extends WebhookRef {
  readonly disabledAtMs: number | null;
}

interface IndexedAccount {
  readonly id: number;
  /** Its last event's: another one means that it must be read again. */
  readonly position: number;
  readonly isClosed: boolean;
  /** In lower case, for the search. */
  readonly name: string;
  /** Webhooks of active keys of this environment, in the order of their issue. */
  readonly webhooks: readonly OwnWebhook[];
}

/** What the lists of the console are sorted and paged by. */
export interface AccountLists {
  /** By id. */
  readonly accounts: readonly Pick<IndexedAccount, 'id' | 'name'>[];
  readonly closed: readonly number[];
  /** By account. */
  readonly webhooks: readonly WebhookRef[];
  /** Those of them that are switched off, the latest first. */
  readonly disabled: readonly WebhookRef[];
}

/**
 * The accounts in order. An account is unpacked when it was first seen and when it has changed; nothing is read while
 * nobody looks, and all is forgotten some time later.
 */
export class AccountIndex {
  readonly #parts: Pick<ConsoleParts, 'directory' | 'environment' | 'clock'>;
  readonly #fresh: Fresh<AccountLists>;
  readonly #known = new Map<number, IndexedAccount>();
  #last: { readonly changes: number; readonly atMs: number; readonly lists: AccountLists } | undefined;
  #forgetting: NodeJS.Timeout | undefined;

  constructor(parts: Pick<ConsoleParts, 'directory' | 'environment' | 'clock'>) {
    this.#parts = parts;
    const now = (): number => parts.clock.now();
    this.#fresh = new Fresh(() => this.#read(), { maxAgeMs: MAX_AGE_MS, now });
  }

  lists(): Promise<AccountLists> {
    clearTimeout(this.#forgetting);
    this.#forgetting = setTimeout(() => this.#forget(), FORGET_AFTER_MS).unref();
    return this.#fresh.get();
  }

  /** The lists, or those of before where they take long; unknown while they are read for the first time. */
  async listsSoon(): Promise<Known<AccountLists>> {
    const soon = await known(
      () => this.lists(),
      () => this.#parts.clock.now(),
      { maxWaitMs: SOON_MS, late: 'the accounts are being read' },
    );
    if (!('unknown' in soon) || this.#last === undefined) return soon;
    return { value: this.#last.lists, atMs: this.#last.atMs };
  }

  #forget(): void {
    this.#known.clear();
    this.#last = undefined;
  }

  async #read(): Promise<AccountLists> {
    const { directory, environment, clock } = this.#parts;
    const { changes } = directory;
    if (this.#last?.changes === changes) return this.#last.lists;
    let [looked, unpacked] = [0, 0];
    for (const state of directory.states()) {
      const known = this.#known.get(state.id);
      const isClosed = state.unreadable !== null;
      if (known?.position !== state.position || known.isClosed !== isClosed) {
        this.#known.set(state.id, indexed(state, environment));
        if (++unpacked % UNPACKED_AT_ONCE === 0) await nextTurn();
      }
      if (++looked % LOOKED_AT_ONCE === 0) await nextTurn();
    }
    const lists = listsOf([...this.#known.values()].sort((a, b) => a.id - b.id));
    this.#last = { changes, atMs: clock.now(), lists };
    return lists;
  }
}

/** Reads the packed text: the directory keeps unpacked what requests use. */
function indexed(
  { id, position, unreadable, packed }: AccountState,
  environment: Environment,
): IndexedAccount {
  const account = packed && unpackAccount(packed);
  const webhooks: OwnWebhook[] = [];
  for (const { prefix, active, webhook, environment: of } of account?.keys.values() ?? []) {
    if (!active || webhook === null || of !== environment) continue;
    webhooks.push({ accountId: id, prefix, disabledAtMs: webhook.disabled?.sinceMs ?? null });
  }
  return { id, position, isClosed: unreadable !== null, name: account?.name.toLowerCase() ?? '', webhooks };
}

function listsOf(accounts: readonly IndexedAccount[]): AccountLists {
  const webhooks = accounts.flatMap((account) => account.webhooks);
  const disabled = webhooks.filter(({ disabledAtMs }) => disabledAtMs !== null);
  return {
    accounts,
    closed: accounts.filter(({ isClosed }) => isClosed).map(({ id }) => id),
    webhooks,
    disabled: disabled.sort((a, b) => (b.disabledAtMs ?? 0) - (a.disabledAtMs ?? 0)),
  };
}
