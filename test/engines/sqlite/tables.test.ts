import { join } from 'node:path';
import { describe, vi } from 'vitest';
import { Database } from '../../../src/engines/sqlite/driver/database.ts';
import { openSqliteTables } from '../../../src/engines/sqlite/tables/tables.ts';
import { tablesContract } from '../../contracts/tables.contract.ts';
import { MemoryStores } from '../../support/engines/memory-stores.ts';
import { type ReadPlan, STORE } from '../../support/engines/tables-under-test.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

/** Returns SQLite's plan of each statement that the work runs. */
async function plansOf(work: () => Promise<unknown>): Promise<ReadPlan[]> {
  const all = vi.spyOn(Database.prototype, 'prepare');
  try {
    await work();
    return all.mock.calls.flatMap(([sql], n) =>
      (all.mock.contexts[n] as Database)
        .prepare(`EXPLAIN QUERY PLAN ${sql}`)
        .all()
        .map(({ detail }) => String(detail))
        .filter(
          (detail) =>
            !/aside|json_each|LIST SUBQUERY|CO-ROUTINE|SCAN \(subquery|^MERGE|^LEFT$|^RIGHT$/.test(detail),
        )
        .map((detail) => ({ ...planOf(detail), detail, sql })),
    );
  } finally {
    all.mockRestore();
  }
}

function planOf(detail: string): ReadPlan {
  const index = /INDEX \w+ (\w+)/.exec(detail)?.[1] ?? (/INTEGER PRIMARY KEY/.test(detail) ? 'key' : 'none');
  return { index, isMore: !/^SEARCH|^SCAN \w+ USING (?:COVERING )?INDEX/.test(detail) };
}

describe('tables in a file', () => {
  tablesContract(async () => {
    const path = join(temporaryFolder(), 'tables.db');
    const steady = new FakeClock();
    const second = () => openSqliteTables(STORE, { path, steady });
    return { tables: second(), second, plansOf };
  });
});

describe('tables in memory', () => {
  tablesContract(async () => {
    const stores = new MemoryStores();
    const second = () => stores.open(STORE, new FakeClock());
    return { tables: second(), second, plansOf };
  });
});
