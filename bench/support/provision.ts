import { changeAccount } from '../../src/accounts/change-account.ts';
import { generateKey } from '../../src/accounts/key-text.ts';
import { systemClock } from '../../src/base/clock.ts';
import {
  openingCommands,
  type SampleAccount,
  sampleAccount,
} from '../../src/customers/sample/sample-directory.ts';
import type { AccountCommand } from '../../src/domain/account-commands.ts';
import type { EventStore } from '../../src/event-store/event-store.ts';

export interface Customer {
  readonly account: SampleAccount;
  readonly key: string;
}

/** A limit that is never reached. */
const RATE_LIMIT = 1_000_000_000;

/** Opens the sample accounts with access and a key each, through the commands behind `fuel account` and `fuel key`. */
export function provision(store: EventStore, accountIds: readonly number[]): Promise<Customer[]> {
  return provisionAccounts(store, accountIds.map(sampleAccount));
}

/** Opens these accounts like `provision`. */
export async function provisionAccounts(
  store: EventStore,
  accounts: readonly SampleAccount[],
): Promise<Customer[]> {
  const author = { actor: 'bench', command: 'bench' };
  const customers: Customer[] = [];
  for (const account of accounts) {
    const { key, ...stored } = generateKey('staging');
    const commands = commandsFor(account, stored);
    await changeAccount({ store, clock: systemClock, author }, account.id, commands);
    customers.push({ account, key });
  }
  return customers;
}

/** Returns the commands that open the account with access and the key. */
export function commandsFor(
  account: SampleAccount,
  key: { readonly prefix: string; readonly secretSha256: string },
): AccountCommand[] {
  return [
    ...openingCommands(account, 0),
    {
      type: 'IssueKey',
      accountId: account.id,
      ...key,
      environment: 'staging',
      label: null,
      allowList: [],
      rateLimit: RATE_LIMIT,
      driverMobile: true,
    },
  ];
}
