import { expect, onTestFinished } from 'vitest';
import { type AccountsFollowerOptions, runAccountsFollower } from '../../../src/accounts/rows/follower.ts';
import { readProgress } from '../../../src/accounts/rows/progress.ts';
import { ACCOUNTS_STORE } from '../../../src/accounts/rows/tables.ts';
import type { Tables } from '../../../src/tables/tables.ts';
import { openPushStores } from '../deliveries/push-stores.ts';
import { memoryCoordination } from '../engines/coordination.ts';
import type { EmptyStores } from '../engines/each-tables.ts';
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
