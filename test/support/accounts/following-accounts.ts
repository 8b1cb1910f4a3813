import { expect, onTestFinished } from 'vitest';
import { type AccountsFollowerOptions, runAccountsFollower } from '../../../src/accounts/rows/follower.ts';
import { readProgress } from '../../../src/accounts/rows/read-rows.ts';
import { ACCOUNTS, ACCOUNTS_STORE } from '../../../src/accounts/rows/tables.ts';
import { FuelError } from '../../../src/base/errors.ts';
import type { Tables } from '../../../src/tables/tables.ts';
import { openPushStores } from '../deliveries/push-stores.ts';
import { memoryCoordination } from '../engines/coordination.ts';
import type { EmptyStores } from '../engines/each-tables.ts';
import { replacing } from '../interposed.ts';
import { memoryLog } from '../service/api.ts';
import { until } from '../waiting.ts';
import { modelOf } from './account-model.ts';
import { allRows, rowsDiffer } from './rows-agree.ts';

/** An event store, tables, and followers that fill these with the rows of accounts. */
export function followingAccounts(empty: EmptyStores) {
  const stores = openPushStores();
  const { store, clock } = stores;
  const coordination = memoryCoordination(clock);
  const open = (): Tables => {
    const tables = empty.open(ACCOUNTS_STORE);
    onTestFinished(() => tables.close());
    return tables;
  };
  const tables = open();
  onTestFinished(() => coordination.close());

  function start(overrides: Partial<AccountsFollowerOptions> = {}) {
    const lines: Record<string, unknown>[] = [];
    const stopping = new AbortController();
    const own = { tables, clock, log: memoryLog(lines), holder: 'one', signal: stopping.signal };
    const ended = runAccountsFollower({ store, coordination, ...own, ...overrides });
    ended.catch(() => undefined); // the test awaits it if it expects a failure
    const stop = async (): Promise<void> => {
      stopping.abort();
      await ended;
    };
    onTestFinished(() => stop().catch(() => undefined));
    const said = (text: string) => lines.filter(({ msg }) => String(msg).includes(text)).length;
    return { ended, stop, said, lines };
  }

  const progress = () => readProgress(tables);
  /** Waits until the rows have reached the end of the log. */
  const reached = async (): Promise<void> => {
    const head = await store.head();
    await until(async () => ((await progress())?.position ?? 0) >= head);
  };
  /** Expects that the rows have reached the log's end and say what its events say. */
  const agree = async (): Promise<void> => {
    await reached();
    expect([...rowsDiffer(await allRows(tables), await modelOf(store))]).toEqual([]);
  };
  return { ...stores, tables, open, coordination, start, progress, reached, agree };
}

/** Tables whose next list of writes that puts an account ends after its first `done` writes, as on a server. */
export function cutAfter(
  tables: Tables,
  done: number,
): { readonly tables: Tables; readonly length: () => number } {
  let length = 0;
  const write: Tables['write'] = async (writes, options) => {
    if (length > 0 || !writes.some(({ table }) => table === ACCOUNTS)) return tables.write(writes, options);
    length = writes.length;
    for (const each of writes.slice(0, done)) await tables.write([each]);
    throw new FuelError('STORE_UNAVAILABLE', 'cut off');
  };
  return { tables: replacing(tables, { write }), length: () => length };
}
