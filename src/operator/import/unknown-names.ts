import { accessRows } from '../../accounts/rows/read-rows.ts';
import { ACCOUNTS } from '../../accounts/rows/tables.ts';
import type { Tables } from '../../tables/tables.ts';

/** The accounts and corporates that records name. */
export class NamedCorporates {
  readonly #named = new Map<number, Set<number>>();

  add(accountId: number, corporateId: number): void {
    const corporates = this.#named.get(accountId) ?? new Set();
    this.#named.set(accountId, corporates.add(corporateId));
  }

  /** The names that the rows of accounts lack, in ascending order. Customers can't ask for what they name. */
  async unknown(tables: Pick<Tables, 'get'>): Promise<UnknownNames> {
    const ids = [...this.#named.keys()].sort((a, b) => a - b);
    const opened = new Set((await tables.get(ACCOUNTS, ids, ['id'])).map(({ id }) => id));
    const corporates: { account: number; corporate: number }[] = [];
    for (const account of ids.filter((id) => opened.has(id))) {
      const named = [...(this.#named.get(account) ?? [])].sort((a, b) => a - b);
      const known = (await accessRows(tables).members(account, { groups: [], corporates: named })).corporates;
      for (const corporate of named) if (!known.has(corporate)) corporates.push({ account, corporate });
    }
    return { accounts: ids.filter((id) => !opened.has(id)), corporates };
  }
}

export interface UnknownNames {
  /** Accounts that were never opened. */
  readonly accounts: readonly number[];
  /** Corporates that accounts do not have, though they were opened. */
  readonly corporates: readonly { readonly account: number; readonly corporate: number }[];
}
