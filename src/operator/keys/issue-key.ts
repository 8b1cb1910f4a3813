import { type AccountWriter, changeAccount } from '../../accounts/change-account.ts';
import { generateKey } from '../../accounts/key-text.ts';
import type { Account } from '../../domain/account.ts';
import type { AccountCommand } from '../../domain/account-commands.ts';
import { planWebhook, type WebhookOptions } from './set-webhook.ts';

type IssueKey = Extract<AccountCommand, { readonly type: 'IssueKey' }>;

export interface KeyRequest extends Omit<IssueKey, 'type' | 'prefix' | 'secretSha256'> {
  readonly webhook: WebhookOptions | null;
}

/** An issued key. Its text and its webhook's secret can be read only here: a hash and a ciphertext are stored. */
export interface IssuedKey {
  readonly key: string;
  readonly prefix: string;
  readonly account: Account;
  readonly webhookSecret: string | null;
  /** A warning about the webhook's URL, such as a name that does not resolve. */
  readonly warning: string | null;
}

/** Issues a key and sets its webhook if one is given, in one step. Throws `REFUSED` with the reason. */
export async function issueKey(
  writer: AccountWriter,
  { webhook, ...request }: KeyRequest,
): Promise<IssuedKey> {
  const { accountId, environment } = request;
  const { key, prefix, secretSha256 } = generateKey(environment);
  const plan = webhook && (await planWebhook({ accountId, prefix }, webhook, writer.clock.now()));
  const issue: IssueKey = { type: 'IssueKey', ...request, prefix, secretSha256 };
  const { account } = await changeAccount(writer, accountId, plan ? [issue, plan.command] : [issue]);
  return {
    key,
    prefix,
    account,
    webhookSecret: plan?.newSecretOf(account) ?? null,
    warning: plan?.warning ?? null,
  };
}
