import type { Directory } from '../../../../projections/directory.ts';
import type { AccountKey } from '../../../domain/account.ts';
import type { Environment } from '../../../domain/account-events.ts';
import type { LaneStreak } from '../../../push/queue/delivery-queue.ts';
import { type Finding, right, some, wrong } from './check.ts';

/** A list with more failing webhooks than an operator reads. */
export const MAX_FAILING = 200;

interface OwnedWebhook {
  readonly accountId: number;
  readonly key: AccountKey;
  readonly hasContact: boolean;
}

/** The webhooks of active keys, switched off or not. */
export function* webhooksOf(
  directory: Pick<Directory, 'accounts'>,
  environment: Environment,
): Generator<OwnedWebhook> {
  for (const { account } of directory.accounts()) {
    if (account === undefined) continue;
    const { id: accountId, emails } = account;
    for (const key of account.keys.values()) {
      if (!key.active || key.webhook === null || key.environment !== environment) continue;
      yield { accountId, key, hasContact: emails.length > 0 };
    }
  }
}

/** Webhooks that may fail and be switched off without anybody being told. */
export function checkContacts(
  webhooks: Iterable<Pick<OwnedWebhook, 'accountId' | 'hasContact'>>,
  operatorEmail: string | undefined,
): Finding {
  const untold = new Set<number>();
  let total = 0;
  for (const { accountId, hasContact } of webhooks) {
    total++;
    if (!hasContact) untold.add(accountId);
  }
  if (operatorEmail !== undefined)
    return right(`${total} webhooks; FUEL_OPERATOR_EMAIL is told about all of them`);
  if (untold.size === 0) return right(`${total} webhooks; each account has a contact`);
  const [first] = untold;
  return wrong(
    `nobody would be told about the webhooks of ${untold.size} accounts: ${some([...untold].map(String))}`,
    `fuel account contact ${first} --email ADDRESS, for each of them; or set FUEL_OPERATOR_EMAIL`,
  );
}

/** Webhooks that fail and are not switched off, the longest streak first. */
export function failingWebhooks(
  failing: readonly LaneStreak[],
  { directory }: { readonly directory: Pick<Directory, 'key'> },
): readonly LaneStreak[] {
  return failing.filter(({ prefix }) => {
    const key = directory.key(prefix)?.key;
    return key?.active === true && key.webhook !== null && key.webhook.disabled === null;
  });
}
