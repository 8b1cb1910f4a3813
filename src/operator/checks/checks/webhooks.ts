import type { Directory } from '../../../../projections/directory.ts';
import type { AccountKey } from '../../../domain/account.ts';
import type { Environment } from '../../../domain/account-events.ts';
import { type Finding, right, some, wrong } from './check.ts';

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

/** How many webhooks are switched off, and how many fail now: what customers have to repair. */
export function checkWebhooks(
  webhooks: Iterable<Pick<OwnedWebhook, 'key'>>,
  backlog: { readonly failingLanes: number; readonly pending: number; readonly held: number },
): Finding {
  let total = 0;
  const disabled: string[] = [];
  for (const { key } of webhooks) {
    total++;
    if (key.webhook?.disabled != null) disabled.push(key.prefix);
  }
  const off = disabled.length === 0 ? '' : ` (${some(disabled)}: fuel webhook show PREFIX says why)`;
  const { failingLanes, pending, held } = backlog;
  return right(
    `${total} webhooks, ${disabled.length} switched off${off}, ${failingLanes} failing; ` +
      `deliveries: ${pending} pending, ${held} held`,
  );
}
