import { type AccountWriter, changeAccount } from '../../accounts/change-account.ts';
import type { AccountCommand } from '../../domain/account-commands.ts';
import { type IssuedKey, issueKey } from '../../operator/keys/issue-key.ts';
import type { WebhookOptions } from '../../operator/keys/set-webhook.ts';
import type { SampleAccount } from './sample-directory.ts';

/** Opens a sample account with access and issues a key for it, by the commands that an operator would give. */
export async function provision(
  writer: AccountWriter,
  account: SampleAccount,
  access: {
    readonly fromMs: number;
    readonly rateLimit: number;
    readonly webhook: WebhookOptions | null;
  },
): Promise<IssuedKey> {
  const accountId = account.id;
  await changeAccount(writer, accountId, openingCommands(account, access.fromMs));
  return issueKey(writer, {
    accountId,
    environment: 'staging',
    label: 'demo',
    allowList: [],
    rateLimit: access.rateLimit,
    driverMobile: true,
    webhook: access.webhook,
  });
}

/** The commands that open the account, with its groups and corporates, and give it access from then on. */
export function openingCommands(account: SampleAccount, fromMs: number): AccountCommand[] {
  const accountId = account.id;
  return [
    { type: 'OpenAccount', accountId, name: account.name },
    { type: 'EnableIntegration', accountId },
    { type: 'SetChargingProfile', accountId, profile: 'demo', fromMs, toMs: null },
    ...account.groups.map(
      ({ id, name }): AccountCommand => ({ type: 'SetCorporateGroup', accountId, groupId: id, name }),
    ),
    ...account.corporates.map(
      ({ id, name, group }): AccountCommand => ({
        type: 'SetCorporate',
        accountId,
        corporateId: id,
        name,
        groupId: group?.id ?? null,
      }),
    ),
  ];
}
