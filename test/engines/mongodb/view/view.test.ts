import { expect, test } from 'vitest';
import { openMongoView } from '../../../../src/engines/mongodb/view/view.ts';
import { transactionsViewContract } from '../../../contracts/transactions-view.contract.ts';
import { transactionsViewAtOnceContract } from '../../../contracts/transactions-view-at-once.contract.ts';
import { viewBuildContract } from '../../../contracts/view-build.contract.ts';
import { describeWithMongodb, freshDatabase, mongodb } from '../../../support/engines/mongodb.ts';
import { WHOLE } from '../../../support/transactions/opened-view.ts';
import { hiding, showing } from '../../../support/transactions/records.ts';
import { rowIn } from '../../../support/transactions/row-in.ts';

const clock = { now: () => 1_000_000 };

describeWithMongodb('the transactions view on MongoDB', () => {
  transactionsViewContract(async () => openMongoView({ connection: mongodb(), clock }));
  const openTwice = async () => {
    const database = freshDatabase();
    const open = () => openMongoView({ connection: mongodb(database), clock });
    return [open(), open()] as const;
  };
  transactionsViewAtOnceContract(openTwice);
  viewBuildContract(openTwice);

  function opened() {
    const connection = mongodb();
    const view = openMongoView({ connection, clock });
    const collectionNames = () =>
      connection.use(async (db) => (await db.listCollections().toArray()).map(({ name }) => name));
    return { connection, view, collectionNames };
  }

  test('rows of an older rendering are served, and their checkpoint says so', async () => {
    const { connection, view } = opened();
    const { rendering } = await view.reset('store-1', 0);
    await connection.use((db) =>
      db.collection('view_checkpoint').updateMany({}, { $inc: { rendering: -1 } }),
    );
    expect(await view.checkpoint()).toMatchObject({ rendering: rendering - 1 });
    expect((await view.page(WHOLE)).rows).toEqual([]);
  });

  test('collections of a newer version are refused with what to do', async () => {
    const { connection, view } = opened();
    await view.reset('store-1', 0);
    await connection.use((db) => db.collection('schema_versions').updateMany({}, { $set: { version: 99 } }));
    await expect(openMongoView({ connection, clock }).checkpoint()).rejects.toMatchObject({
      code: 'STORE_NEWER',
    });
  });

  test('an erasure drops the generation that an interrupted switch has left, and no other', async () => {
    const { connection, view, collectionNames } = opened();
    const { generation } = await view.reset('store-1', 0);
    await view.apply([showing({ id: 1 })], { generation, position: 1 });
    const build = await view.startBuild({ storeId: 'store-1', servesFrom: 1 });
    await connection.use((db) =>
      db
        .collection<{ _id: string }>('view_checkpoint')
        .updateOne({ _id: 'transactions' }, { $set: { generation: build.generation + 1, position: 1 } }),
    );
    await view.erase(1);
    const names = await collectionNames();
    expect(names).not.toContain(`transactions_${generation}`);
    expect(await view.building()).toMatchObject({ generation: build.generation });
  });

  test('a reset leaves the collection of a later generation, which another process may be making', async () => {
    const { connection, view, collectionNames } = opened();
    const { generation } = await view.reset('store-1', 0);
    const later = `transactions_${generation + 5}`;
    await connection.use((db) => db.createCollection(later));
    await view.reset('store-1', 0);
    expect(await collectionNames()).toContain(later);
  });

  test('a reset leaves the collections of one generation, and drops what a late projector wrote', async () => {
    const { connection, view, collectionNames } = opened();
    const first = await view.reset('store-1', 0);
    await view.apply([showing({ id: 1 })], { generation: first.generation, position: 1 });
    const second = await view.reset('store-1', 0);
    expect((await view.page(WHOLE)).rows).toEqual([]);
    expect(await view.apply([showing({ id: 2 })], { generation: first.generation, position: 2 })).toBe(
      'reset',
    );
    expect(await collectionNames()).not.toContain(`transactions_${first.generation}`);
    const late = `transactions_${first.generation}`;
    await connection.use((db) => db.collection(late).insertOne({ account_id: 7 }));
    expect((await view.page(WHOLE)).rows).toEqual([]);
    const third = await view.reset('store-1', 0);
    expect((await collectionNames()).filter((name) => name.startsWith('transactions_'))).toEqual([
      `transactions_${third.generation}`,
    ]);
    expect(third.generation).toBe(second.generation + 1);
  });

  test('the next generation uses a collection that was made for it, sharded perhaps, as it is', async () => {
    const { connection, view, collectionNames } = opened();
    const { generation } = await view.reset('store-1', 0);
    const next = `transactions_${generation + 1}`;
    await connection.use((db) => db.createCollection(next));
    await view.reset('store-1', 5);
    expect(await collectionNames()).toContain(next);
    expect(await collectionNames()).not.toContain(`transactions_${generation}`);
  });

  test('a reader that knows a former generation is not misled by rows written late to it', async () => {
    const { connection, view } = opened();
    const { generation } = await view.reset('store-1', 0);
    await view.apply([showing({ id: 1 }), showing({ id: 2 })], { generation, position: 1 });
    expect((await view.page(WHOLE)).rows).toHaveLength(2);
    await openMongoView({ connection, clock }).reset('store-1', 5);
    const late = {
      _id: 1 as never,
      account_id: 7,
      status: 1,
      place: { created_at: new Date(5), id: 1 },
      head: '',
    };
    await connection.use((db) =>
      db.collection(`transactions_${generation}`).insertOne({ ...late, fees: '' }),
    );
    await expect(view.page(WHOLE)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  });

  test('rows that stay behind where the checkpoint was removed never get into a new view', async () => {
    const { connection, view } = opened();
    const { generation } = await view.reset('store-1', 0);
    await view.apply([showing({ id: 1 })], { generation, position: 1 });
    await connection.use((db) => db.collection('view_checkpoint').deleteMany({}));
    expect((await view.reset('store-1', 0)).generation).toBeGreaterThan(generation);
    expect((await view.page(WHOLE)).rows).toEqual([]);
    expect(await rowIn(view, 1)).toBeUndefined();
  });

  test('a document has only the fields of its record, and a tombstone only account and revision', async () => {
    const { connection, view } = opened();
    const { generation } = await view.reset('store-1', 0);
    await view.apply([showing({ id: 1 }), showing({ id: 2 }), hiding(2), showing({ id: 3 })], {
      generation,
      position: 1,
    });
    await view.erase(3);
    const found = await connection.use((db) => db.collection(`transactions_${generation}`).find().toArray());
    const place = { created_at: new Date(1_000), id: 1 };
    const head = '{"id":1,"driver":{"id":1,"name":"x"';
    const shown = {
      _id: 1,
      account_id: 7,
      revision: 0,
      status: 1,
      place,
      corporate_id: 31,
      head,
      fees: '{}',
    };
    expect(found).toEqual([
      shown,
      { _id: 2, account_id: 7, revision: 1 },
      { _id: 3, account_id: 7, revision: Number.MAX_SAFE_INTEGER },
    ]);
  });

  test('a row is read from its bytes as it was written, whatever its text and numbers', async () => {
    const { view } = opened();
    const { generation } = await view.reset('store-1', 0);
    const id = Number.MAX_SAFE_INTEGER;
    const row = showing({
      id,
      createdAtMs: -62_135_596_800_000,
      fees: '{"a":"Ωμέγα 給油 🚚"}',
      corporateGroupId: 2 ** 40,
    });
    await view.apply([row], { generation, position: 1 });
    const page = await view.page({ ...WHOLE, fromMs: -8.64e15, references: { corporate_group_id: 2 ** 40 } });
    const read = {
      id,
      createdAtMs: -62_135_596_800_000,
      fees: Buffer.from('{"a":"Ωμέγα 給油 🚚"}'),
      mobileNumber: null,
    };
    expect(page.rows).toMatchObject([{ ...read, pump: null, odometer: null }]);
  });
});
