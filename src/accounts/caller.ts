import { hash } from 'node:crypto';
import type { AccessTerms, AccountKey } from '../domain/account.ts';
import type { Environment } from '../domain/account-events.ts';
import { matches } from './key-text.ts';

/** A key that is known, with what a request needs of its account. */
export interface KnownKey {
  readonly accountId: number;
  readonly key: AccountKey;
  readonly access: AccessTerms;
  /** The reason why the account can't be read; then nothing of it may be served. */
  readonly unreadable: string | null;
}

/** The corporates and groups of an account that a request names. */
export interface NamedMembers {
  readonly groups: readonly number[];
  readonly corporates: readonly number[];
}

/** Those of them that the account has. */
export interface KnownMembers {
  readonly groups: ReadonlySet<number>;
  /** The group of each corporate. */
  readonly corporates: ReadonlyMap<number, number | null>;
}

/** The rows of accounts that a request needs. Each request reads them, so that a change counts at once. */
export interface AccessRows {
  key(prefix: string): Promise<KnownKey | undefined>;
  members(accountId: number, named: NamedMembers): Promise<KnownMembers>;
}

/** The caller that a request claims to come from, before any check. */
export interface Caller {
  /** The prefix of the presented key, known or not. It is not secret: logs name a key by it. */
  readonly prefix: string | undefined;
  /** The key with that prefix. Keys of the other environment are unknown here. */
  readonly known: KnownKey | undefined;
  /** True if the secret is that of the known key. */
  readonly proven: boolean;
  /** The id under which requests are counted: a hash of the whole presented key, since the secret is stored nowhere. */
  readonly countingId: string;
}

const PRESENTED = /^svc_(live|test)_([a-z0-9]{10})_(.*)$/;

/** Returns the caller that a presented `X-API-Key` names, before anything is looked up. */
export function presentedCaller(presented: string | undefined): Caller {
  const [, , prefix] = PRESENTED.exec(presented ?? '') ?? [];
  return { prefix, known: undefined, proven: false, countingId: '' };
}

/**
 * Looks up the presented `X-API-Key`. The form of the secret is not checked, since allow-list and rate limit need only
 * the prefix: a wrong secret of any form is just not proven. Rejects as the rows do.
 */
export async function identifyCaller(
  presented: string | undefined,
  deployment: { readonly accounts: Pick<AccessRows, 'key'>; readonly environment: Environment },
): Promise<Caller> {
  const [, form, prefix, secret] = PRESENTED.exec(presented ?? '') ?? [];
  const unknown = presentedCaller(presented);
  if (presented === undefined || prefix === undefined || secret === undefined) return unknown;
  const environment: Environment = form === 'live' ? 'production' : 'staging';
  const found = environment === deployment.environment ? await deployment.accounts.key(prefix) : undefined;
  if (found?.key.environment !== environment) return unknown;
  return {
    prefix,
    known: found,
    proven: matches(secret, found.key.secretSha256),
    countingId: hash('sha256', presented, 'base64url'),
  };
}
