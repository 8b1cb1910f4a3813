import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openSqliteDirectorySnapshots } from '../../../../src/accounts/directory/snapshots/sqlite.ts';
import { Database } from '../../../../src/sqlite/database.ts';
import { directorySnapshotsContract } from '../../../contracts/directory-snapshots.contract.ts';
import { sealKeys } from '../../../support/accounts/seal-keys.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';

function openFile() {
  const path = join(temporaryFolder(), 'directory.db');
  const snapshots = openSqliteDirectorySnapshots({ path, keys: sealKeys(1) });
  const db = new Database(path, { migrations: ['', ''], durability: 'normal' });
  onTestFinished(() => db.close());
  return { path, snapshots, db };
}

directorySnapshotsContract(async () => {
  const { path, snapshots, db } = openFile();
  return {
    snapshots,
    second: (keys = sealKeys(1)) => openSqliteDirectorySnapshots({ path, keys }),
    async damage(how) {
      const damages = {
        lose: 'DELETE FROM chunks WHERE number = 9',
        change: "UPDATE chunks SET bytes = x'00' WHERE number = 9",
        position: 'UPDATE snapshot SET position = 11',
      };
      db.exec(damages[how]);
    },
    async generations() {
      return db.prepare('SELECT count(DISTINCT generation) AS n FROM chunks').get()?.n as number;
    },
  };
});

test('chunks of a process that was killed while it saved are removed after an hour', async () => {
  const { snapshots, db } = openFile();
  onTestFinished(() => snapshots.close());
  const leave = (name: string, secondsAgo: number) =>
    db.exec(`INSERT INTO chunks VALUES ('${name}', 0, 1, x'00', unixepoch() - ${secondsAgo})`);
  leave('old', 3_601);
  leave('new', 3_000);
  await snapshots.save({ version: 1, storeId: 's', position: 1 }, [Buffer.from('one')]);
  const left = db.prepare("SELECT generation FROM chunks WHERE generation IN ('old', 'new')").all();
  expect(left).toEqual([expect.objectContaining({ generation: 'new' })]);
});
