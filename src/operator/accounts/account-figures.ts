import { everyWebhook, readSummary } from '../../accounts/rows/stored-account.ts';
import { ACCOUNTS, KEYS } from '../../accounts/rows/tables.ts';
import type { Tables } from '../../tables/tables.ts';

/** The limit up to which accounts and webhooks are counted, which takes a few milliseconds. */
export const MAX_ACCOUNTS_COUNTED = 10_000;
/** More are not named. */
const MAX_LISTED = 100;

/** Figures about all accounts, for the checks and the overview. Counts end at `MAX_ACCOUNTS_COUNTED`. */
export interface AccountFigures {
  readonly accounts: number;
  /** The first accounts that can't be read. */
  readonly unreadable: readonly { readonly id: number; readonly reason: string }[];
  /** The webhooks of active keys. */
  readonly webhooks: number;
  readonly disabledWebhooks: number;
  /** The prefixes of those that were switched off last, the latest first. */
  readonly disabled: readonly string[];
}

export const NO_ACCOUNTS: AccountFigures = {
  accounts: 0,
  unreadable: [],
  webhooks: 0,
  disabledWebhooks: 0,
  disabled: [],
};

export async function accountFigures(tables: Pick<Tables, 'find' | 'count'>): Promise<AccountFigures> {
  const [accounts, webhooks, disabledWebhooks, unreadable, disabled] = await Promise.all([
    tables.count(ACCOUNTS, { index: 'key' }, MAX_ACCOUNTS_COUNTED),
    tables.count(KEYS, { index: 'by_webhook' }, MAX_ACCOUNTS_COUNTED),
    tables.count(KEYS, { index: 'by_disabled' }, MAX_ACCOUNTS_COUNTED),
    tables.find(ACCOUNTS, { index: 'by_unreadable', limit: MAX_LISTED, columns: ['id', 'unreadable'] }),
    tables.find(KEYS, { index: 'by_disabled', descending: true, limit: MAX_LISTED, columns: ['prefix'] }),
  ]);
  return {
    accounts,
    webhooks,
    disabledWebhooks,
    unreadable: unreadable.map(({ id, unreadable: reason }) => ({ id, reason: reason ?? '' })),
    disabled: disabled.map(({ prefix }) => prefix),
  };
}

/** Returns the ids of the accounts that have a webhook and no contact. */
export async function accountsWithoutContact(tables: Pick<Tables, 'find' | 'get'>): Promise<number[]> {
  const hasContact = new Map<number, boolean>();
  for await (const { account_id: id } of everyWebhook(tables))
    if (!hasContact.has(id))
      hasContact.set(id, ((await readSummary(tables, id))?.details?.emails.length ?? 0) > 0);
  return [...hasContact].flatMap(([id, has]) => (has ? [] : [id])).sort((a, b) => a - b);
}
