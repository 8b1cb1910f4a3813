import { type AccountWriter, changeAccount } from '../../accounts/change-account.ts';
import type { MasterKeys } from '../../accounts/master-key.ts';
import { keyIn } from '../../accounts/rows/rows-of.ts';
import { everySecret, masterKeysInUse } from '../../accounts/rows/stored-account.ts';
import { KEYS, type KeyRow } from '../../accounts/rows/tables.ts';
import { FuelError } from '../../base/errors.ts';
import type { Account } from '../../domain/account.ts';
import type { Ciphertext } from '../../domain/account-events.ts';
import type { WebhookCommand } from '../../domain/webhook-commands.ts';
import type { Tables } from '../../tables/tables.ts';

/** Numbers of webhook secrets. A key has at most one, even if it is switched off or its webhook was removed. */
export interface RewrapCounts {
  readonly rewrapped: number;
  readonly unchanged: number;
  readonly unreadable: number;
}

export interface RewrapOptions {
  readonly accounts: Pick<Tables, 'find' | 'firsts'>;
  readonly masterKeys: MasterKeys;
  readonly onUnreadable: (prefix: string, reason: string) => void;
  readonly onProgress: (counts: RewrapCounts) => void;
  /** Ends the work between two keys. It can be repeated. */
  readonly signal: AbortSignal;
}

type RewrapCommand = Extract<WebhookCommand, { type: 'RewrapWebhookSecret' }>;

/** The most secrets that are counted. */
const MAX_COUNTED = 100_000;

/** The number of webhook secrets that are encrypted with each master key, by its id. A key with any is still needed. */
export async function secretsByMasterKey(
  accounts: Pick<Tables, 'firsts' | 'count'>,
): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const id of await masterKeysInUse(accounts)) {
    const selection = { index: 'by_master_key', equals: { master_key: id } } as const;
    counts.set(id, await accounts.count(KEYS, selection, MAX_COUNTED));
  }
  return counts;
}

/**
 * Re-encrypts every webhook secret that is not encrypted with the first master key. The secrets themselves and the signatures
 * do not change. A secret that can't be read is reported and left as it is. A simultaneous `fuel webhook set` or rewrap does no
 * harm, since each change is decided on the account's present state.
 */
export async function rewrapSecrets(writer: AccountWriter, options: RewrapOptions): Promise<RewrapCounts> {
  const { accounts, masterKeys, onProgress, signal } = options;
  const counts = { rewrapped: 0, unchanged: 0, unreadable: 0 };
  const [first] = masterKeys.identities();
  const isFirst = (id: string): boolean => id === first?.master_key_id;
  // The first key's secrets come first, so that none is counted again after it was re-encrypted.
  const ids = (await masterKeysInUse(accounts)).sort((a, b) => Number(isFirst(b)) - Number(isFirst(a)));
  for (const id of ids)
    for await (const row of everySecret(accounts, id)) {
      if (signal.aborted) return counts;
      counts[await rewrap(writer, row, options)] += 1;
      onProgress(counts);
    }
  return counts;
}

async function rewrap(
  writer: AccountWriter,
  row: KeyRow,
  { masterKeys, onUnreadable }: RewrapOptions,
): Promise<keyof RewrapCounts> {
  const { prefix, account_id: accountId, unreadable } = row;
  const { webhookSecret } = keyIn(row);
  if (webhookSecret === null) return 'unchanged';
  const read =
    unreadable === null
      ? readSecret(masterKeys, prefix, webhookSecret)
      : { fault: `its account ${accountId} can't be read: ${unreadable}` };
  if ('fault' in read) {
    onUnreadable(prefix, read.fault);
    return 'unreadable';
  }
  if (masterKeys.isCurrent(webhookSecret)) return 'unchanged';
  const secret = masterKeys.encryptSecret({ prefix, secret: read.text });
  const command: RewrapCommand = { type: 'RewrapWebhookSecret', accountId, prefix, secret };
  const { account } = await changeAccount(writer, accountId, [command]);
  return isRecorded(command, account) ? 'rewrapped' : 'unchanged';
}

function readSecret(
  masterKeys: MasterKeys,
  prefix: string,
  secret: Ciphertext,
): { readonly text: string } | { readonly fault: string } {
  try {
    return { text: masterKeys.decryptSecret(prefix, secret) };
  } catch (error) {
    if (!(error instanceof FuelError)) throw error;
    return { fault: error.message };
  }
}

/** False if another rewrap was first. */
function isRecorded({ prefix, secret }: RewrapCommand, account: Account): boolean {
  return account.keys.get(prefix)?.webhookSecret?.nonce === secret.nonce;
}
