import type { Account } from '../../../domain/account.ts';
import type { AccountDraft } from '../../../domain/account-evolve.ts';

/** An account as text, a tenth of the size of its objects, with the facts that are needed without parsing the text. */
export interface PackedAccount {
  /** JSON in UTF-8, from offset `from` up to `to`: many accounts may share the bytes. */
  readonly bytes: Uint8Array;
  readonly from: number;
  readonly to: number;
  /** The prefixes of its keys. */
  readonly prefixes: readonly string[];
  readonly disabledWebhooks: number;
  /** The ids of the master keys that are needed to sign for its webhooks. */
  readonly masterKeys: readonly string[];
}

type PlainMap<T> = T extends ReadonlyMap<infer K, infer V> ? (readonly [K, V])[] : T;
type PlainAccount = { readonly [Field in keyof Account]: PlainMap<Account[Field]> };

export function packAccount(account: Account): PackedAccount {
  const { profiles, groups, corporates, keys, ...rest } = account;
  const plain: PlainAccount = {
    ...rest,
    profiles: [...profiles],
    groups: [...groups],
    corporates: [...corporates],
    keys: [...keys],
  };
  const bytes = Buffer.from(JSON.stringify(plain));
  return {
    ...{ bytes, from: 0, to: bytes.length },
    prefixes: [...keys.keys()],
    disabledWebhooks: countDisabledWebhooks(account),
    masterKeys: masterKeysOf(account),
  };
}

export function unpackAccount({ bytes, from, to }: PackedAccount): AccountDraft {
  const { buffer, byteOffset } = bytes;
  const text = Buffer.from(buffer, byteOffset + from, to - from).toString();
  const { profiles, groups, corporates, keys, ...rest } = JSON.parse(text) as PlainAccount;
  return {
    ...rest,
    profiles: new Map(profiles),
    groups: new Map(groups),
    corporates: new Map(corporates),
    keys: new Map(keys),
  };
}

/** Counts the disabled webhooks of active keys. */
export function countDisabledWebhooks(account: Account | undefined): number {
  let count = 0;
  for (const { active, webhook } of account?.keys.values() ?? [])
    if (active && webhook !== null && webhook.disabled !== null) count++;
  return count;
}

/** The ids of the master keys that encrypt the webhook secrets of active keys. */
export function masterKeysOf(account: Account | undefined): string[] {
  const ids = new Set<string>();
  for (const { active, webhook, webhookSecret } of account?.keys.values() ?? [])
    if (active && webhook !== null && webhookSecret !== null) ids.add(webhookSecret.master_key_id);
  return [...ids];
}
