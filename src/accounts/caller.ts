import { hash } from 'node:crypto';
import type { Account, AccountKey } from '../domain/account.ts';
import type { Environment } from '../domain/account-events.ts';
import { matches } from './key-text.ts';

/** A key that the directory knows, with its account as far as the account's events can be read. */
export interface KnownKey {
  readonly key: AccountKey;
  readonly entry: {
    readonly account: Account | undefined;
    readonly unreadable: { readonly reason: string } | null;
  };
}

/** The part of the directory that a request needs. */
export interface AccessDirectory {
  key(prefix: string): KnownKey | undefined;
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
const UNKNOWN_CALLER: Caller = { prefix: undefined, known: undefined, proven: false, countingId: '' };

/**
 * Looks up the presented `X-API-Key`. The form of the secret is not checked, since allow-list and rate limit need only
 * the prefix: a wrong secret of any form is just not proven.
 */
export function identifyCaller(
  presented: string | undefined,
  deployment: { readonly directory: AccessDirectory; readonly environment: Environment },
): Caller {
  const [, form, prefix, secret] = PRESENTED.exec(presented ?? '') ?? [];
  if (presented === undefined || prefix === undefined || secret === undefined) return UNKNOWN_CALLER;
  const environment: Environment = form === 'live' ? 'production' : 'staging';
  const found = environment === deployment.environment ? deployment.directory.key(prefix) : undefined;
  const known = found?.key.environment === environment ? found : undefined;
  return {
    prefix,
    known,
    proven: known !== undefined && matches(secret, known.key.secretSha256),
    countingId: known === undefined ? '' : hash('sha256', presented, 'base64url'),
  };
}
