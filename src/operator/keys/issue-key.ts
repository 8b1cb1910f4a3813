import { type AccountWriter, changeAccount } from '../../accounts/change-account.ts';
import { generateKey } from '../../accounts/key-text.ts';
import type { Account } from '../../domain/account.ts';
import type { AccountCommand } from '../../domain/account-commands.ts';
import type { Environment } from '../../domain/account-events.ts';
import { planWebhook, type WebhookOptions } from './set-webhook.ts';

export interface KeyRequest {
  readonly accountId: number;
  readonly environment: Environment;
  readonly label: string | null;
  readonly allowList: readonly string[];
  /** Requests in 60 seconds. */
  readonly rateLimit: number;
  readonly driverMobile: boolean;
  readonly webhook: WebhookOptions | null;
}

/** Key and webhook secret can be read only here: their hash and ciphertext are kept. */
export interface IssuedKey {
  readonly key: string;
  readonly prefix: string;
  readonly account: Account;
  readonly webhookSecret: string | null;
  /** What the operator should know about the webhook's URL. */
  readonly warning: string | null;
}

/** Issues a key and, where asked for, its webhook at once. Throws `REFUSED` with the reason. */
export async function issueKey(writer: AccountWriter, request: KeyRequest): Promise<IssuedKey> {
  const { accountId, environment, label, allowList, rateLimit, driverMobile } = request;
  const { key, prefix, secretSha256 } = generateKey(environment);
  const commands: AccountCommand[] = [
    {
      type: 'IssueKey',
      accountId,
      prefix,
      environment,
      label,
      secretSha256,
      allowList,
      rateLimit,
      driverMobile,
    },
  ];
  const { webhook } = request;
  const plan = webhook && (await planWebhook({ accountId, prefix }, webhook, writer.clock.now()));
  if (plan !== null) commands.push(plan.command);
  const { account } = await changeAccount(writer, accountId, commands);
  const webhookSecret = plan?.newSecretOf(account) ?? null;
  return { key, prefix, account, webhookSecret, warning: plan?.warning ?? null };
}
