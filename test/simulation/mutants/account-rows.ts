import type { Mutant } from './list.ts';

export const ACCOUNT_ROWS: readonly Mutant[] = [
  {
    name: 'a checkpoint of the accounts before its rows',
    file: 'src/accounts/rows/follower.ts',
    from: '[...writes, moved]);',
    to: '[moved]); await tables.write(writes);',
  },
  {
    name: 'a row of a key without the change of its account',
    file: 'src/accounts/rows/writes-of.ts',
    from: 'events.every(isOfMember)',
    to: "events.every((event) => isOfMember(event) || event.type === 'IntegrationDisabled')",
  },
  {
    name: 'a heartbeat of the accounts that is lost',
    file: 'src/accounts/rows/follower.ts',
    from: 'if (isIdle && arrivedAtMs - this.#writtenAtMs < everyMs)',
    to: 'if (events.length === 0)',
  },
  {
    name: 'a follower of the accounts that two processes hold',
    file: 'src/accounts/rows/follower.ts',
    from: 'lease: ACCOUNTS_LEASE, holder,',
    to: 'lease: ACCOUNTS_LEASE + holder, holder,',
  },
  {
    name: 'a checkpoint of the accounts that another follower moves back',
    file: 'src/accounts/rows/follower.ts',
    from: 'put(PROGRESS, progress, { as: this.#progress });',
    to: 'put(PROGRESS, progress);',
  },
];
