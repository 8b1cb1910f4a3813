import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { REMOVED_AFTER_MS } from '../../../src/pull/view/generations.ts';
import type { TransactionsView } from '../../../src/pull/view/transactions-view.ts';
import { transactionsViewContract } from '../../contracts/transactions-view.contract.ts';
import { transactionsViewAtOnceContract } from '../../contracts/transactions-view-at-once.contract.ts';
import { viewBuildContract } from '../../contracts/view-build.contract.ts';
import { MemoryStores } from '../../support/engines/memory-stores.ts';
import { describeWithMongodb, freshDatabase, mongodb } from '../../support/engines/mongodb.ts';
import {
  describeWithPostgres,
  freshSchema,
  postgresql,
} from '../../support/engines/postgresql/postgresql.ts';
import { openFiles } from '../../support/interposed.ts';
import { stoppedTime } from '../../support/steady-time.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import {
  viewInFolder,
  viewInMemory,
  viewOnMongodb,
  viewOnPostgres,
} from '../../support/transactions/open-view.ts';
import { WHOLE } from '../../support/transactions/opened-view.ts';

const clock = { now: () => 1_000_000 };

/**
 * Runs the contracts of views. `place` returns a function that opens one empty view, each time as another process does.
 */
function viewContracts(place: () => () => TransactionsView): void {
  transactionsViewContract(async () => place()());
  const openTwice = async () => {
    const open = place();
    return [open(), open()] as const;
  };
  transactionsViewAtOnceContract(openTwice);
  viewBuildContract(openTwice);
}

describe('the transactions view in files', () => {
  viewContracts(() => {
    const folder = temporaryFolder();
    return () => viewInFolder(folder, clock);
  });
});

test('a former file is removed by any process that applies events, long after a switch, and held open by none', async () => {
  const advance = stoppedTime();
  const folder = temporaryFolder();
  const [view, other] = [viewInFolder(folder, clock), viewInFolder(folder, clock)];
  const { generation } = await view.reset('store-1', 0);
  await other.page(WHOLE);
  await other.find([1]);
  const built = await view.startBuild({ storeId: 'store-1', servesFrom: 0 });
  expect(await view.serveBuild(built.generation)).toBe(true);
  const former = `transactions-${generation}.db`;
  await other.apply([], built);
  advance(REMOVED_AFTER_MS - 1);
  await other.apply([], built);
  expect(readdirSync(folder)).toContain(former);
  advance(1);
  await other.apply([], built);
  expect(readdirSync(folder)).not.toContain(former);
  expect(await other.leaving()).toEqual([]);
  await view.page(WHOLE);
  expect(openFiles(join(folder, former))).toBe(0);
  for (const each of [view, other]) await each.close();
  expect(openFiles(folder)).toBe(0);
});

describe('the transactions view in memory', () => {
  viewContracts(() => {
    const stores = new MemoryStores();
    return () => viewInMemory(clock, stores);
  });
});

describeWithMongodb('the transactions view on MongoDB', () => {
  viewContracts(() => {
    const database = freshDatabase();
    return () => viewOnMongodb(mongodb(database), clock);
  });
});

describeWithPostgres('the transactions view on PostgreSQL', () => {
  viewContracts(() => {
    const schema = freshSchema();
    return () => {
      const connection = postgresql(schema);
      onTestFinished(() => connection.close()); // a server accepts only some hundred
      return viewOnPostgres(connection, clock);
    };
  });
});
