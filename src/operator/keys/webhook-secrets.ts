import { type AccountWriter, changeAccount } from '../../accounts/change-account.ts';
import type { Directory } from '../../accounts/directory/fold/directory.ts';
import type { MasterKeys } from '../../accounts/master-key.ts';
import { FuelError } from '../../base/errors.ts';
import type { Account, AccountKey } from '../../domain/account.ts';
import type { Ciphertext } from '../../domain/account-events.ts';
import type { WebhookCommand } from '../../domain/webhook-commands.ts';

/** Numbers of webhook secrets. A key has at most one, even if it is switched off or its webhook was removed. */
export interface RewrapCounts {
  readonly rewrapped: number;
  readonly unchanged: number;
  readonly unreadable: number;
}

export interface RewrapOptions {
  readonly directory: Pick<Directory, 'accounts'>;
  readonly masterKeys: MasterKeys;
  readonly onUnreadable: (prefix: string, reason: string) => void;
  readonly onProgress: (counts: RewrapCounts) => void;
  /** Ends the work between two accounts. It can be repeated. */
  readonly signal: AbortSignal;
}

type RewrapCommand = Extract<WebhookCommand, { type: 'RewrapWebhookSecret' }>;

interface KeptSecret {
  readonly prefix: string;
  readonly secret: Ciphertext;
}

/** The number of webhook secrets that are encrypted with each master key, by its id. A key with any is still needed. */
export function secretsByMasterKey(directory: Pick<Directory, 'accounts'>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { keys } of directory.accounts()) {
    for (const { secret } of secretsOf(keys)) {
      counts.set(secret.master_key_id, (counts.get(secret.master_key_id) ?? 0) + 1);
    }
  }
  return counts;
}

/**
 * Re-encrypts every webhook secret that is not encrypted with the first master key. The secrets themselves and the signatures
 * do not change. A secret that can't be read is reported and left as it is. A simultaneous `fuel webhook set` or rewrap does no
 * harm, since each change is decided on the account's present state.
 */
export async function rewrapSecrets(writer: AccountWriter, options: RewrapOptions): Promise<RewrapCounts> {
  const { directory, masterKeys, onUnreadable, onProgress, signal } = options;
  const counts = { rewrapped: 0, unchanged: 0, unreadable: 0 };
  for (const { id: accountId, keys, unreadable } of directory.accounts()) {
    if (signal.aborted) break;
    const commands: RewrapCommand[] = [];
    for (const { prefix, secret } of secretsOf(keys)) {
      const read =
        unreadable === null
          ? readSecret(masterKeys, prefix, secret)
          : { fault: `its account ${accountId} can't be read: ${unreadable.reason}` };
      if ('fault' in read) {
        counts.unreadable += 1;
        onUnreadable(prefix, read.fault);
      } else if (masterKeys.isCurrent(secret)) counts.unchanged += 1;
      else {
        const rewrapped = masterKeys.encryptSecret({ prefix, secret: read.text });
        commands.push({ type: 'RewrapWebhookSecret', accountId, prefix, secret: rewrapped });
      }
    }
    if (commands.length > 0) {
      const done = await changeAccount(writer, accountId, commands);
      for (const command of commands)
        counts[isRecorded(command, done.account) ? 'rewrapped' : 'unchanged'] += 1;
    }
    onProgress(counts);
  }
  return counts;
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

function* secretsOf(keys: ReadonlyMap<string, AccountKey> | undefined): Generator<KeptSecret> {
  for (const { prefix, webhookSecret } of keys?.values() ?? []) {
    if (webhookSecret !== null) yield { prefix, secret: webhookSecret };
  }
}
