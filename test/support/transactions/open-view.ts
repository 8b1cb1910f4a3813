import { join } from 'node:path';
import type { Clock } from '../../../src/base/clock.ts';
import type { MongoConnection } from '../../../src/engines/mongodb/driver/connection.ts';
import { openMongoTables } from '../../../src/engines/mongodb/tables/tables.ts';
import type { PostgresConnection } from '../../../src/engines/postgresql/driver/connection.ts';
import { openPostgresTables } from '../../../src/engines/postgresql/tables/tables.ts';
import { openSqliteTables } from '../../../src/engines/sqlite/tables/tables.ts';
import type { Made } from '../../../src/pull/view/generations.ts';
import { VIEWS, VIEWS_STORE } from '../../../src/pull/view/stores.ts';
import type { TransactionsView } from '../../../src/pull/view/transactions-view.ts';
import { openTransactionsView } from '../../../src/pull/view/view.ts';
import { type OpenTables, put } from '../../../src/tables/tables.ts';
import { MemoryStores } from '../engines/memory-stores.ts';

/** Opens the view in the files of this folder, as a process does. */
export function viewInFolder(folder: string, clock: Clock): TransactionsView {
  const open = (plan: Parameters<typeof openSqliteTables>[0]) =>
    openSqliteTables(plan, { path: join(folder, `${plan.name}.db`) });
  return openTransactionsView(open, clock);
}

/** Opens the view in these stores in memory. */
export function viewInMemory(clock: Clock, stores = new MemoryStores()): TransactionsView {
  return openTransactionsView((plan) => stores.open(plan, clock), clock);
}

export function viewOnMongodb(connection: MongoConnection, clock: Clock): TransactionsView {
  return openTransactionsView((plan) => openMongoTables(plan, { connection }), clock);
}

export function viewOnPostgres(connection: PostgresConnection, clock: Clock): TransactionsView {
  return openTransactionsView((plan) => openPostgresTables(plan, { connection }), clock);
}

/** Changes the record of the served generation, as another version of the program would have written it. */
export async function alterServed(open: OpenTables, change: (made: Made) => Made): Promise<void> {
  const views = open(VIEWS_STORE);
  const [row] = await views.find(VIEWS, { index: 'key', limit: 1 });
  if (row?.served === null || row === undefined) throw new Error('no view is served');
  await views.write([put(VIEWS, { ...row, served: JSON.stringify(change(JSON.parse(row.served) as Made)) })]);
  await views.close();
}

/** Does the same in the file of a data directory. */
export function alterServedIn(folder: string, change: (made: Made) => Made): Promise<void> {
  return alterServed((plan) => openSqliteTables(plan, { path: join(folder, `${plan.name}.db`) }), change);
}
