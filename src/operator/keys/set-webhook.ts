import { type AccountWriter, changeAccount } from '../../accounts/change-account.ts';
import { generateWebhookSecret } from '../../accounts/key-text.ts';
import type { MasterKeys } from '../../accounts/master-key.ts';
import type { Account } from '../../domain/account.ts';
import type { Ciphertext } from '../../domain/account-events.ts';
import type { WebhookCommand } from '../../domain/webhook-commands.ts';
import { judgeTarget, type NameLookup } from '../../push/targets/target.ts';

export interface WebhookOptions {
  readonly url: string;
  readonly allowPrivate: boolean;
  readonly masterKeys: MasterKeys;
  readonly names: NameLookup;
}

export interface WebhookSet {
  readonly changed: boolean;
  /** The secret if it was generated now, otherwise `null`. It can't be read later. */
  readonly webhookSecret: string | null;
  readonly warning: string | null;
  readonly account: Account;
}

/**
 * Prepares the command that sets a key's webhook URL, with a new secret in case the key has none. Throws `REFUSED` if the URL may
 * not be called.
 */
export async function planWebhook(
  ref: { readonly accountId: number; readonly prefix: string },
  { url: text, allowPrivate, masterKeys, names }: WebhookOptions,
  atMs: number,
) {
  const { url, warning } = await judgeTarget(text, { allowPrivate, names });
  const secret = generateWebhookSecret();
  const newSecret: Ciphertext = masterKeys.encryptSecret({ prefix: ref.prefix, secret });
  const command: WebhookCommand = { type: 'SetWebhookUrl', ...ref, url, atMs, newSecret };
  return {
    command,
    warning,
    /** The new secret, or `null` if the key already had one. */
    newSecretOf: (account: Account) =>
      account.keys.get(ref.prefix)?.webhookSecret?.nonce === newSecret.nonce ? secret : null,
  };
}

/** Sets or changes the webhook URL of a key. Throws `REFUSED` with the reason. */
export async function setWebhook(
  writer: AccountWriter,
  ref: { readonly accountId: number; readonly prefix: string },
  options: WebhookOptions,
): Promise<WebhookSet> {
  const plan = await planWebhook(ref, options, writer.clock.now());
  const { events, account } = await changeAccount(writer, ref.accountId, [plan.command]);
  const changed = events.length > 0;
  const webhookSecret = changed ? plan.newSecretOf(account) : null;
  return { changed, webhookSecret, warning: plan.warning, account };
}
