import fs, { readdirSync, renameSync, rmSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openSqliteView } from '../../../../src/engines/sqlite/view/view.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';

const RETIRE = 'UPDATE checkpoint SET retired = 1'; // the commit of a switch

function openIn(folder: string) {
  const view = openSqliteView({ path: join(folder, 'transactions.db'), clock: { now: () => 0 } });
  onTestFinished(() => view.close());
  return view;
}

/** A folder with the served file and one that is built beside it, as another process left them. */
async function servedAndBuilt() {
  const folder = temporaryFolder();
  const path = (name: string) => join(folder, name);
  const view = openIn(folder);
  await view.reset('store-1', 0);
  const { generation } = await view.startBuild({ storeId: 'store-1', servesFrom: 0 });
  await view.close();
  const run = (sql: string): void => {
    const db = new DatabaseSync(path('transactions.db'));
    db.exec(sql);
    db.close();
  };
  const databases = () => readdirSync(folder).filter((name) => name.endsWith('.db'));
  return { folder, path, generation, run, databases };
}

/** What another process does between the next reading of a folder's names and the opening of its files. */
function afterNextNames(work: () => void): void {
  const read = fs.readdirSync;
  const spy = vi.spyOn(fs, 'readdirSync').mockImplementationOnce(((...given: Parameters<typeof read>) => {
    const names = read(...given);
    work();
    return names;
  }) as typeof read);
  syncBuiltinESMExports();
  onTestFinished(() => {
    spy.mockRestore();
    syncBuiltinESMExports();
  });
}

test('a look that finds the retired file alone looks again for the one that took its place', async () => {
  const { folder, path, generation, run, databases } = await servedAndBuilt();
  renameSync(path('transactions-2.db'), path('later'));
  afterNextNames(() => {
    renameSync(path('later'), path('transactions-2.db'));
    run(RETIRE);
  });
  expect(await openIn(folder).checkpoint()).toMatchObject({ generation });
  expect(databases()).toEqual(['transactions-2.db']);
});

test('a file that is removed after its name was read is not made again', async () => {
  const { folder, path, generation, databases } = await servedAndBuilt();
  afterNextNames(() => rmSync(path('transactions.db')));
  expect(await openIn(folder).checkpoint()).toMatchObject({ generation });
  expect(databases()).toEqual(['transactions-2.db']);
});

test('a build that waits for the lock while another file takes its place begins beside that one', async () => {
  const { folder, path, generation, databases } = await servedAndBuilt();
  const view = openIn(folder);
  const db = new DatabaseSync(path('transactions.db'));
  onTestFinished(() => db.close());
  db.exec(`BEGIN IMMEDIATE; ${RETIRE}`);
  const starting = view.startBuild({ storeId: 'store-1', servesFrom: 0 });
  await nextTurn();
  db.exec('COMMIT');
  expect((await starting).generation).toBe(generation + 1);
  expect(await view.checkpoint()).toMatchObject({ generation });
  expect(databases().sort()).toEqual(['transactions-2.db', 'transactions-3.db']);
});

test('who looks for all files after a switch holds the retired one no more', async () => {
  const { folder, generation, run } = await servedAndBuilt();
  const view = openIn(folder);
  run(RETIRE);
  await view.erase(1);
  expect(await view.checkpoint()).toMatchObject({ generation });
});
