import type { Directory } from '../../accounts/directory/fold/directory.ts';
import type { DirectoryAccount } from '../../accounts/directory/fold/directory-entry.ts';
import { isUnavailable } from '../../base/errors.ts';
import type { Environment } from '../../domain/account-events.ts';
import { VISIBLE_STATUSES } from '../../domain/transaction-events.ts';
import type { TransactionsView } from '../../pull/view/transactions-view.ts';
import type { LaneStreak } from '../../push/queue/delivery.ts';
import { some } from '../answers/names.ts';
import { type Finding, right, wrong } from './check.ts';

/** What is looked at: the newest records of the accounts that were changed last, which are those set up lately. */
const MAX_ACCOUNTS = 50;
const MAX_RECORDS = 20;
/** A list with more failing webhooks than an operator reads. */
export const MAX_FAILING = 200;

/** Records whose corporate the directory does not have: their customer can not ask for that corporate. */
export async function checkCorporates(
  directory: Pick<Directory, 'accounts'>,
  view: Pick<TransactionsView, 'page' | 'find'>,
  nowMs: number,
): Promise<Finding> {
  const missing = new Set<string>();
  let looked = 0;
  const accounts = latest(directory);
  for (const { id: accountId, account } of accounts) {
    const query = { accountId, fromMs: 0, toMs: nowMs, statuses: VISIBLE_STATUSES, limit: MAX_RECORDS };
    let ids: readonly number[];
    try {
      ids = (await view.page(query)).rows.map(({ id }) => id);
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      return wrong(`the view can not be read: ${(error as Error).message}`, 'fuel projection status');
    }
    for (const { shown } of (await view.find(ids)).values()) {
      if (shown === null) continue;
      looked++;
      const { corporate_id: corporate } = shown.references;
      if (corporate !== null && account?.corporates.has(corporate) !== true)
        missing.add(`${corporate} of account ${accountId}`);
    }
  }
  const scope = `looked at the newest ${looked} records of the ${accounts.length} accounts that were changed last`;
  if (missing.size === 0) return right(scope);
  const [first = ''] = missing;
  const [corporate, account] = first.split(' of account ');
  return wrong(
    `records name corporates that the directory lacks: ${some([...missing])}; ${scope}`,
    `fuel transaction list --account ${account} --corporate ${corporate}, for each of them: where the account is right, ` +
      `fuel account corporate ${account} ${corporate} --name NAME; where it is wrong, fuel import list and fuel import void`,
  );
}

function latest(directory: Pick<Directory, 'accounts'>): readonly DirectoryAccount[] {
  const readable = [...directory.accounts()].filter(({ account }) => account !== undefined);
  return readable.toSorted((a, b) => b.position - a.position).slice(0, MAX_ACCOUNTS);
}

/** The webhooks of active keys, switched off or not. */
export function* webhooksOf(directory: Pick<Directory, 'accounts'>, environment: Environment) {
  for (const { account } of directory.accounts()) {
    if (account === undefined) continue;
    const { id: accountId, emails } = account;
    for (const key of account.keys.values()) {
      if (!key.active || key.webhook === null || key.environment !== environment) continue;
      yield { accountId, key, hasContact: emails.length > 0 } as const;
    }
  }
}

/** Webhooks that may fail and be switched off without anybody being told. */
export function checkContacts(
  webhooks: Iterable<{ readonly accountId: number; readonly hasContact: boolean }>,
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
  directory: Pick<Directory, 'key'>,
): readonly LaneStreak[] {
  return failing.filter(({ prefix }) => {
    const key = directory.key(prefix)?.key;
    return key?.active === true && key.webhook !== null && key.webhook.disabled === null;
  });
}
