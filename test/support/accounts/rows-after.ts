import { ACCOUNTS_STORE } from '../../../src/accounts/rows/tables.ts';
import type { Clock } from '../../../src/base/clock.ts';
import type { Tables } from '../../../src/tables/tables.ts';
import { openPushStores } from '../deliveries/push-stores.ts';
import { MemoryStores } from '../engines/memory-stores.ts';
import { KeptRows } from './kept-rows.ts';

interface OfAccount {
  readonly type: string;
  readonly data: object & { readonly account_id?: number };
}

/** Returns rows of accounts in which there is none yet. */
export function noRows(clock: Clock): Tables {
  return new MemoryStores().open(ACCOUNTS_STORE, clock);
}

/** Returns the rows of accounts after these events. An event that names no account is recorded as one of account 7. */
export async function rowsAfter(...events: readonly OfAccount[]): Promise<Tables> {
  const { store, clock, append } = openPushStores();
  for (const event of events) {
    await append(`account-${event.data.account_id ?? 7}`, event);
    clock.advance(1);
  }
  const rows = new KeptRows(store, clock);
  await rows.follow();
  return rows.tables;
}
