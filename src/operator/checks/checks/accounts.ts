import type { Directory } from '../../../../projections/directory.ts';
import type { DirectoryAccount } from '../../../../projections/directory-entry.ts';
import { VISIBLE_STATUSES } from '../../../../projections/transactions.ts';
import { isUnavailable } from '../../../base/errors.ts';
import type { TransactionsView } from '../../../pull/view/transactions-view.ts';
import { type Finding, right, some, wrong } from './check.ts';

/** What is looked at: the newest records of the accounts that were changed last, which are those set up lately. */
const MAX_ACCOUNTS = 50;
const MAX_RECORDS = 20;

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
    const rows = await Promise.all(ids.map((id) => view.find(id)));
    for (const row of rows) {
      if (typeof row !== 'object') continue;
      looked++;
      if (account?.corporates.has(row.corporateId) !== true)
        missing.add(`${row.corporateId} of account ${accountId}`);
    }
  }
  const scope = `looked at the newest ${looked} records of the ${accounts.length} accounts that were changed last`;
  if (missing.size === 0) return right(scope);
  const [first = ''] = missing;
  const [corporate, account] = first.split(' of account ');
  return wrong(
    `records name corporates that the directory lacks: ${some([...missing])}; ${scope}`,
    `fuel account corporate ${account} ${corporate} --name NAME, for each of them`,
  );
}

function latest(directory: Pick<Directory, 'accounts'>): readonly DirectoryAccount[] {
  const readable = [...directory.accounts()].filter(({ account }) => account !== undefined);
  return readable.toSorted((a, b) => b.position - a.position).slice(0, MAX_ACCOUNTS);
}
