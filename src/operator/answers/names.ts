import { readKeys } from '../../accounts/rows/read-rows.ts';
import { readSummary } from '../../accounts/rows/stored-account.ts';
import { FuelError } from '../../base/errors.ts';
import { transactionStream } from '../../domain/transaction-events.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import type { Tables } from '../../tables/tables.ts';

const PREFIX = /^[a-z0-9]{10}$/;

/**
 * Throws `USAGE` if the text can't be a prefix. The message does not repeat it, since it may be a whole key or a secret,
 * and messages end up in logs and on other people's screens.
 */
export function readPrefix(text: string): string {
  if (PREFIX.test(text)) return text;
  throw new FuelError(
    'USAGE',
    "must be a key's prefix, the 10 characters after svc_live_ or svc_test_. See `fuel key list`",
  );
}

export interface Names {
  readonly account?: number | undefined;
  readonly key?: string | undefined;
  readonly transaction?: number | undefined;
}

/**
 * Says which name was never recorded, or that the key belongs to another account than the one that is named. Without this
 * an empty list would look like an answer. `undefined` if all names are known.
 */
export async function unknownName(
  { account, key, transaction }: Names,
  store: Pick<EventStore, 'readStream' | 'isErased'>,
  accounts: Pick<Tables, 'get'>,
): Promise<string | undefined> {
  if (account !== undefined && (await readSummary(accounts, account)) === undefined)
    return unknownAccount(account);
  const owner = key === undefined ? undefined : (await readKeys(accounts, [key])).get(key)?.accountId;
  if (key !== undefined && owner === undefined) return unknownKey(key);
  if (account !== undefined && owner !== undefined && account !== owner) {
    return `Key ${key} belongs to account ${owner}, not to account ${account}`;
  }
  if (transaction === undefined) return undefined;
  const stream = transactionStream(transaction);
  const [first] = await store.readStream(stream);
  if (first !== undefined || (await store.isErased(stream))) return undefined;
  return unknownTransaction(transaction);
}

export function unknownAccount(account: number): string {
  return `No account ${account}. See \`fuel account list\``;
}

export function unknownKey(prefix: string): string {
  return `No key ${prefix}. See \`fuel key list\``;
}

export function unknownTransaction(id: number): string {
  return `No transaction ${id} was ever recorded`;
}

/** Returns `1 webhook`, `2 webhooks`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** The most names that a sentence lists. */
const MAX_NAMED = 5;

/** Returns `a, b, c, …`. */
export function some(names: readonly string[]): string {
  return names.slice(0, MAX_NAMED).join(', ') + (names.length > MAX_NAMED ? ', …' : '');
}
