import { loadAccounts } from '../../accounts/directory/load-directory.ts';
import type { EventStore } from '../../event-store/event-store.ts';

/** The accounts and corporates that records name. */
export class NamedCorporates {
  readonly #named = new Map<number, Set<number>>();

  add(accountId: number, corporateId: number): void {
    const corporates = this.#named.get(accountId) ?? new Set();
    this.#named.set(accountId, corporates.add(corporateId));
  }

  /** The names that the directory lacks, in ascending order. Customers can't ask for what they name. */
  async unknown(store: Pick<EventStore, 'readStream' | 'readStreams'>): Promise<UnknownNames> {
    const accounts: number[] = [];
    const corporates: { account: number; corporate: number }[] = [];
    const ids = [...this.#named.keys()].sort((a, b) => a - b);
    for await (const [account, entry] of loadAccounts(store, ids)) {
      if (entry === undefined) accounts.push(account);
      for (const corporate of [...(this.#named.get(account) ?? [])].sort((a, b) => a - b))
        if (entry?.account?.corporates.has(corporate) === false) corporates.push({ account, corporate });
    }
    return { accounts, corporates };
  }
}

export interface UnknownNames {
  /** Accounts that were never opened. */
  readonly accounts: readonly number[];
  /** Corporates that accounts do not have, though they were opened. */
  readonly corporates: readonly { readonly account: number; readonly corporate: number }[];
}
