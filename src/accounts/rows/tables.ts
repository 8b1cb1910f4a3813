import { type RowOf, type StorePlan, tablePlan } from '../../tables/plan.ts';

/**
 * The rows of accounts. `position` is that of the event that the row was last made for. `details` is an `AccountDetails` as
 * JSON, and `null` if the account can't be read. Then `unreadable` says why.
 */
export const ACCOUNTS = tablePlan({
  name: 'accounts',
  key: 'id',
  columns: {
    id: 'integer',
    position: 'integer',
    revision: 'integer',
    name: 'text?',
    details: 'text?',
    unreadable: 'text?',
    unreadable_at: 'integer?',
  },
  indexes: { by_name: ['name'], by_unreadable: ['unreadable_at'] },
});

/**
 * A row of each key, with everything that a request and an attempt need. `settings` is an `AccountKey`, and `access` the
 * `AccessTerms` of its account, both as JSON. `unreadable` says why the account can't be read; the key is then as it was
 * last read. `ended_at` is the position of the last event that ended the key's deliveries.
 */
export const KEYS = tablePlan({
  name: 'account_keys',
  key: 'prefix',
  columns: {
    prefix: 'text',
    account_id: 'integer',
    position: 'integer',
    settings: 'text',
    access: 'text',
    unreadable: 'text?',
    ended_at: 'integer?',
    ended_reason: 'text?',
    enabled_at: 'time?',
    /** The master key that encrypts the secret of its webhook. */
    master_key: 'text?',
    /** The webhook of an active key of an account that can be read: `active` or `disabled`, and since when it is disabled. */
    webhook: 'text?',
    disabled_at: 'time?',
  },
  indexes: {
    by_account: ['account_id'],
    by_master_key: ['master_key'],
    by_webhook: ['webhook', 'account_id'],
    by_disabled: ['disabled_at'],
    by_position: ['position'],
  },
});

/** The corporates and the corporate groups of accounts. */
export const MEMBERS = tablePlan({
  name: 'account_members',
  key: 'id',
  columns: {
    id: 'text',
    account_id: 'integer',
    kind: 'text',
    number: 'integer',
    position: 'integer',
    name: 'text',
    group_id: 'integer?',
  },
  indexes: { by_account: ['account_id', 'kind', 'number'] },
});

/**
 * One row: the checkpoint, and the moment, by the clock of the tables, up to which the rows have everything that was recorded.
 * `reached` is at least the checkpoint: the rows have every event up to it, but it may be the position of a record that reads
 * don't show, so nothing continues from it.
 */
export const PROGRESS = tablePlan({
  name: 'accounts_progress',
  key: 'name',
  columns: {
    name: 'text',
    store_id: 'text',
    position: 'integer',
    reached: 'integer',
    anchor: 'text?',
    complete_at: 'time?',
  },
  indexes: {},
});

/** The key of that row. */
export const PROGRESS_NAME = 'accounts';

export const ACCOUNTS_STORE: StorePlan = {
  name: 'accounts',
  version: 1,
  tables: [ACCOUNTS, KEYS, MEMBERS, PROGRESS],
  durability: 'normal', // a power cut takes the last rows together with their checkpoint
  withinMs: 10_000,
};

/** The same tables for requests, which do not wait for long: with its page, a request is refused within 2 s. */
export const ACCESS_STORE: StorePlan = { ...ACCOUNTS_STORE, withinMs: 900 };

export type AccountRow = RowOf<typeof ACCOUNTS>;
export type KeyRow = RowOf<typeof KEYS>;
export type MemberRow = RowOf<typeof MEMBERS>;
export type ProgressRow = RowOf<typeof PROGRESS>;
export type MemberKind = 'corporate' | 'group';

export function memberId(accountId: number, kind: MemberKind, number: number): string {
  return `${accountId}:${kind}:${number}`;
}
