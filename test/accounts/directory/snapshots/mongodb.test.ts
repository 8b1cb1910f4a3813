import { expect, onTestFinished, test } from 'vitest';
import { openMongoDirectorySnapshots } from '../../../../src/accounts/directory/snapshots/mongodb.ts';
import { directorySnapshotsContract } from '../../../contracts/directory-snapshots.contract.ts';
import { sealKeys } from '../../../support/accounts/seal-keys.ts';
import { describeWithMongodb, freshDatabase, mongodb } from '../../../support/engines/mongodb.ts';

const PARTS = 'directory_snapshot_parts';

describeWithMongodb('directory snapshots on MongoDB', () => {
  directorySnapshotsContract(async () => {
    const database = freshDatabase();
    const connection = mongodb(database);
    return {
      snapshots: openMongoDirectorySnapshots({ connection, keys: sealKeys(1) }),
      second: (keys = sealKeys(1)) => openMongoDirectorySnapshots({ connection: mongodb(database), keys }),
      damage: (how) =>
        connection.use(async (db) => {
          if (how === 'position')
            await db.collection('directory_snapshots').updateOne({}, { $set: { position: 11 } });
          else if (how === 'lose') await db.collection(PARTS).deleteOne({ number: 9 });
          else await db.collection(PARTS).updateOne({ number: 9 }, { $set: { bytes: Buffer.from('x') } });
        }),
      generations: () =>
        connection.use(async (db) => (await db.collection(PARTS).distinct('generation')).length),
    };
  });

  test('chunks of a process that was killed while it saved are removed after an hour', async () => {
    const connection = mongodb();
    const snapshots = openMongoDirectorySnapshots({ connection, keys: sealKeys(1) });
    onTestFinished(() => snapshots.close());
    const left = (generation: string, ageMs: number) => ({
      generation,
      number: 0,
      created_at: new Date(Date.now() - ageMs),
    });
    await connection.use((db) =>
      db.collection(PARTS).insertMany([left('old', 3_601_000), left('new', 3_000_000)]),
    );
    await snapshots.save({ version: 1, storeId: 's', position: 1 }, [Buffer.from('one')]);
    const found = await connection.use((db) => db.collection(PARTS).distinct('generation'));
    expect(found).toContain('new');
    expect(found).not.toContain('old');
  });
});
