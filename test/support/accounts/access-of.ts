import type { AccessRows } from '../../../src/accounts/caller.ts';
import type { AccountModel } from './account-model.ts';

const NO_ACCESS = {
  integration: { enabled: false, sinceMs: 0 },
  profiles: new Map(),
  profileChangedAtMs: null,
};

/** The rows that a request would read if they agreed with this model. */
export function accessOf(accounts: AccountModel): AccessRows {
  return {
    async key(prefix) {
      const found = accounts.key(prefix);
      if (found === undefined) return undefined;
      const { id: accountId, account, unreadable } = found.entry;
      return {
        accountId,
        key: found.key,
        access: account ?? NO_ACCESS,
        unreadable: unreadable?.reason ?? null,
      };
    },
    async members(accountId, named) {
      const account = accounts.account(accountId)?.account;
      const corporates = named.corporates.flatMap((id) => {
        const corporate = account?.corporates.get(id);
        return corporate === undefined ? [] : [[id, corporate.groupId] as const];
      });
      return {
        groups: new Set(named.groups.filter((id) => account?.groups.has(id))),
        corporates: new Map(corporates),
      };
    },
  };
}
