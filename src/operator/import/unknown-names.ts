import { loadAccounts } from '../../accounts/directory/load-directory.ts';
import type { EventStore } from '../../event-store/event-store.ts';

/** The corporates that records name, by account. */
export class NamedCorporates {
  readonly #named = new Map<number, Set<number>>();

  /** `corporateId`: `null` where only the account is named. */
  add(accountId: number, corporateId: number | null): void {
    const corporates = this.#named.get(accountId) ?? new Set();
    if (corporateId !== null) corporates.add(corporateId);
    this.#named.set(accountId, corporates);
  }

  /** What the directory does not have: customers can not ask for it. In ascending order. */
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
  /** Never opened. */
  readonly accounts: readonly number[];
  /** Of accounts that were opened. */
  readonly corporates: readonly { readonly account: number; readonly corporate: number }[];
}
