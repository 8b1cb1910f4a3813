import { expect, test } from 'vitest';
import { rowsIn } from '../../../src/accounts/directory/rows/rows.ts';
import { openMongoDirectoryRows } from '../../../src/engines/mongodb/directory-rows.ts';
import { directoryRowsContract } from '../../contracts/directory-rows.contract.ts';
import { beforeWrites } from '../../support/engines/interposed-mongodb.ts';
import { describeWithMongodb, freshDatabase, mongodb } from '../../support/engines/mongodb.ts';

describeWithMongodb('the rows of a directory on MongoDB', () => {
  directoryRowsContract(async () => {
    const database = freshDatabase();
    const connection = mongodb(database);
    return {
      rows: openMongoDirectoryRows({ connection }),
      second: () => openMongoDirectoryRows({ connection: mongodb(database) }),
      lose: (accountId) =>
        connection.use(async (db) => {
          await db.collection<{ _id: number }>('directory').deleteOne({ _id: accountId });
        }),
    };
  });

  test('a row that another process saves between the look at it and its removal stays', async () => {
    const database = freshDatabase();
    const other = openMongoDirectoryRows({ connection: mongodb(database) });
    const row = { accountId: 7, revision: 0, position: 1, digest: 'd', prefixes: [] };
    const head = {
      ...{ version: 5, storeId: 's', position: 1 },
      anchor: { position: 1, stream: 'account-7', revision: 0, recordedAtMs: 1 },
    };
    await other.clear({ ...head, seal: 'one' });
    await other.save([{ ...row, packed: Buffer.from('old') }], { ...head, seal: 'two' }, 'one');
    let removals = 0;
    const connection = beforeWrites(mongodb(database), async (write) => {
      if (write !== 'directory.deleteMany' || removals++ > 0) return;
      const saved = [{ ...row, packed: Buffer.from('new') }];
      expect(await other.save(saved, { ...head, seal: 'four' }, 'three')).toBe(true);
    });
    await openMongoDirectoryRows({ connection }).clear({ ...head, seal: 'three' });
    const [kept] = (await Array.fromAsync(other.rows())).flatMap(rowsIn);
    expect([removals > 0, kept && Buffer.from(kept.packed).toString()]).toEqual([true, 'new']);
  });
});
