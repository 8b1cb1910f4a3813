import type { Db, Document } from 'mongodb';
import { expect, test } from 'vitest';
import type { MongoConnection } from '../../../../src/engines/mongodb/driver/connection.ts';
import { applyChanges } from '../../../../src/engines/mongodb/view/changes.ts';
import {
  type Generation,
  generationOf,
  moveCheckpoint,
  readCheckpoint,
} from '../../../../src/engines/mongodb/view/generations.ts';
import { readPage } from '../../../../src/engines/mongodb/view/page.ts';
import { openMongoView } from '../../../../src/engines/mongodb/view/view.ts';
import { ERASED_REVISION } from '../../../../src/event-store/recorded-event.ts';
import type { ViewChange } from '../../../../src/pull/record/project-event.ts';
import type { PageQuery } from '../../../../src/pull/view/transactions-view.ts';
import { beforeWrites } from '../../../support/engines/interposed-mongodb.ts';
import { describeWithMongodb, mongodb } from '../../../support/engines/mongodb.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { Steps } from '../../../support/interposed.ts';
import { WHOLE } from '../../../support/transactions/opened-view.ts';
import { hiding, showing } from '../../../support/transactions/records.ts';
import { rowIn } from '../../../support/transactions/row-in.ts';

const REFUSED = { code: 'ITEM_REFUSED' };
const NOTHING: Document = { _id: { $lt: 0 } };

/** Fails at one step of a change, as a crash would: the steps before it are done, those after it are not. */
describeWithMongodb('a change of the view on MongoDB that is interrupted', () => {
  function opened() {
    const connection = mongodb();
    const clock = new FakeClock();
    return { connection, clock, view: openMongoView({ connection, clock }) };
  }

  /** Lets a collection accept only what fits; everything by default. */
  async function permit(connection: MongoConnection, name: string, validator: Document = {}): Promise<void> {
    await connection.use(async (db) => {
      await db.createCollection(name).catch(() => undefined);
      await db.command({ collMod: name, validator });
    });
  }

  test('loses no event that was to be parked: it is parked before its row is written', async () => {
    const { connection, view } = opened();
    const { generation } = await view.reset('store-1', 0);
    const parked = `transactions_parked_${generation}`;
    const changes = [
      showing({ id: 1 }),
      showing({ id: 1, fees: '{"other":1}' }, { revision: 1, position: 5 }),
      hiding(1, { revision: 2 }),
    ];
    await permit(connection, parked, NOTHING);
    await expect(view.apply(changes, { generation, position: 6 })).rejects.toMatchObject(REFUSED);
    await permit(connection, parked);
    expect(await view.apply(changes, { generation, position: 6 })).toMatchObject([{ position: 5 }]);
    expect(await view.parked()).toMatchObject([{ position: 5, stream: 'transaction-1', revision: 1 }]);
    expect(await rowIn(view, 1)).toBe('hidden');
  });

  test('has not moved the checkpoint past rows that were not written', async () => {
    const { connection, view } = opened();
    const { generation } = await view.reset('store-1', 0);
    await permit(connection, `transactions_${generation}`, NOTHING);
    const batch = [showing({ id: 1 })];
    await expect(view.apply(batch, { generation, position: 6 })).rejects.toMatchObject(REFUSED);
    expect((await view.checkpoint())?.position).toBe(0);
    await permit(connection, `transactions_${generation}`);
    expect(await view.apply(batch, { generation, position: 6 })).toEqual([]);
    expect((await view.page(WHOLE)).rows.map(({ id }) => id)).toEqual([1]);
  });

  test('is not complete before it has the indexes that pages are found by', async () => {
    const { connection, view } = opened();
    const { generation } = await view.reset('store-1', 6);
    const rows = `transactions_${generation}`;
    const inTheWay = { name: 'by_account', key: { revision: 1 } } as const;
    await connection.use((db) => db.collection(rows).createIndex(inTheWay.key, inTheWay));
    const batch = [showing({ id: 1 })];
    await expect(view.apply(batch, { generation, position: 6 })).rejects.toThrow(/by_account/);
    await expect(view.page(WHOLE)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await connection.use((db) => db.collection(rows).dropIndex('by_account'));
    await view.apply(batch, { generation, position: 6 });
    expect((await view.page(WHOLE)).rows.map(({ id }) => id)).toEqual([1]);
  });

  test('leaves a parked event in the list until a retry has applied it', async () => {
    const { connection, view } = opened();
    const { generation } = await view.reset('store-1', 0);
    const place = { position: 5, stream: 'transaction-1', type: 'Odd', revision: 0 };
    await view.apply([{ ...place, parkReason: 'odd' }], { generation, position: 6 });
    await permit(connection, `transactions_${generation}`, NOTHING);
    await expect(view.retry([showing({ id: 1 }, { position: 5 })])).rejects.toMatchObject(REFUSED);
    expect(await view.parked()).toMatchObject([{ position: 5 }]);
  });
});

describeWithMongodb(
  'a row of the view on MongoDB that another process writes between reading and writing it',
  () => {
    const erasing = {
      ...{ position: 5, stream: 'transaction-1', type: 'erase' },
      change: { kind: 'erase', revision: ERASED_REVISION, id: 1 },
    } as const;

    test.each<[string, ViewChange[], { readonly change: ViewChange; readonly meanwhile: ViewChange }]>([
      ['was not there', [], { change: hiding(1), meanwhile: showing({ id: 1 }) }],
      ['was there', [showing({ id: 1 })], { change: erasing, meanwhile: hiding(1) }],
    ])('is decided once more where it %s', async (_, before, { change, meanwhile }) => {
      const connection = mongodb();
      const view = openMongoView({ connection, clock: new FakeClock() });
      const { generation } = await view.reset('store-1', 0);
      await view.apply(before, { generation, position: 1 });
      await connection.use(async (db) => {
        const collections = generationOf(db, generation);
        let isFirst = true;
        const rows = beforeWriting(collections.rows, async () => {
          if (isFirst) await applyChanges(collections, [meanwhile], 0);
          isFirst = false;
        });
        expect(await applyChanges({ ...collections, rows }, [change], 0)).toEqual([]);
        expect(isFirst).toBe(false);
        expect((await collections.rows.findOne({ _id: 1 }))?.revision).toBe(
          'change' in change && change.change.revision,
        );
      });
      expect(await rowIn(view, 1)).toBe('hidden');
    });
  },
);

describeWithMongodb('a generation of the view on MongoDB that is no longer in use', () => {
  async function filled() {
    const connection = mongodb();
    const clock = new FakeClock();
    const view = openMongoView({ connection, clock });
    const { generation } = await view.reset('store-1', 0);
    await view.apply([showing({ id: 1 })], { generation, position: 1 });
    const ids = async () => (await view.page(WHOLE)).rows.map(({ id }) => id);
    return { connection, clock, view, generation, ids };
  }

  /** As by a process that died before it dropped the former generation. */
  const switchCheckpoint = (connection: MongoConnection, generation: number) =>
    connection.use((db) =>
      db
        .collection<{ _id: string }>('view_checkpoint')
        .updateOne({ _id: 'transactions' }, { $set: { generation, position: 0, serves_from: 9 } }),
    );

  test('is served for less than a second where it was not dropped, and not where the clock went back', async () => {
    const { connection, clock, generation, ids } = await filled();
    expect(await ids()).toEqual([1]);
    await switchCheckpoint(connection, generation + 1);
    clock.advance(999);
    expect(await ids()).toEqual([1]);
    clock.advance(1);
    await expect(ids()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });

    const other = await filled();
    expect(await other.ids()).toEqual([1]);
    await switchCheckpoint(other.connection, other.generation + 1);
    other.clock.advance(-1);
    await expect(other.ids()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  });

  test('is not read where a late write has recreated it: the page comes from the one in use', async () => {
    const { connection, clock, view, generation, ids } = await filled();
    expect(await ids()).toEqual([1]);
    const other = openMongoView({ connection, clock });
    const next = await other.reset('store-1', 1);
    const rows = [showing({ id: 1 }), showing({ id: 2 })];
    await other.apply(rows, { generation: next.generation, position: 1 });
    const late = { account_id: 7, status: 1, place: { created_at: new Date(1_000), id: 1 } };
    await connection.use((db) => db.collection(`transactions_${generation}`).insertOne(late));
    expect(await ids()).toEqual([2, 1]);
    expect(await rowIn(view, 2)).toMatchObject({ id: 2 });
  });

  test('is distinguished from one that lost an index, which is an error', async () => {
    const { connection, generation, ids } = await filled();
    await connection.use((db) => db.collection(`transactions_${generation}`).dropIndex('by_account'));
    await expect(ids()).rejects.toThrow(/hint|index/);
  });

  test('does not move the checkpoint of the one that is', async () => {
    const { connection, view, generation } = await filled();
    const next = await view.reset('store-1', 0);
    const position = 99;
    await connection.use(async (db: Db) => {
      expect(await moveCheckpoint(db, { generation, position })).toBe(false);
      expect((await readCheckpoint(db))?.position).toBe(0);
      expect(await moveCheckpoint(db, { generation: next.generation, position })).toBe(true);
      expect((await readCheckpoint(db))?.position).toBe(position);
    });
  });

  test('refuses a batch that began while it was', async () => {
    const { connection, clock, view, generation } = await filled();
    let usesLeft = Infinity;
    const racing = beforeUse(connection, async () => {
      usesLeft -= 1;
      if (usesLeft === 0) await view.reset('store-1', 0);
    });
    const late = openMongoView({ connection: racing, clock });
    expect((await late.checkpoint())?.generation).toBe(generation);
    usesLeft = 2; // with the first one the batch reads which generation is in use
    expect(await late.apply([showing({ id: 2 })], { generation, position: 2 })).toBe('reset');
    expect(await rowIn(view, 2)).toBeUndefined();
    expect(await view.checkpoint()).toMatchObject({ generation: generation + 1, position: 0 });
  });

  test('is replaced by a reset with a higher number, which stays in use', async () => {
    const { connection, view, generation } = await filled();
    await switchCheckpoint(connection, generation + 9);
    const next = await view.reset('store-1', 0);
    expect(next.generation).toBe(generation + 1);
    expect(await view.checkpoint()).toMatchObject({ generation: generation + 9, servesFrom: 9 });
    const to = { generation: next.generation, position: 1 };
    expect(await view.apply([showing({ id: 1 })], to)).toBe('reset');
  });

  test('is suspected where any search of a page found nothing, not only where all did', async () => {
    const { connection, generation } = await filled();
    const references = { corporate_id: Array.from({ length: 150 }, (_, n) => 31 + n) };
    const read = (query: Partial<PageQuery>) =>
      connection.use((db) => readPage(db, generation, { query: { ...WHOLE, ...query }, maxTimeMS: 9_000 }));
    expect(await read({})).toMatchObject({ isProven: true });
    expect(await read({ references })).toMatchObject({ rows: [{ id: 1 }], isProven: false });
  });
});

type View = ReturnType<typeof openMongoView>;

describeWithMongodb('a call of the view on MongoDB that is interrupted', () => {
  const odd = { position: 9, stream: 'transaction-9', type: 'Odd', revision: 0, parkReason: 'odd' };

  /** A view that is not complete, since its indexes take long, with two rows, a tombstone and a parked event. */
  async function filled() {
    const connection = mongodb();
    const clock = new FakeClock();
    const view = openMongoView({ connection, clock });
    const { generation } = await view.reset('store-1', 99);
    const rows = [showing({ id: 1 }), showing({ id: 2 }), showing({ id: 3 }), hiding(3)];
    await view.apply([...rows, odd], { generation, position: 10 });
    await view.startBuild({ storeId: 'store-1', servesFrom: 99 });
    const checkpoint = async () => {
      const { generation: _, ...rest } = (await view.checkpoint()) ?? { generation: 0 };
      return rest;
    };
    const content = async () => ({
      rows: await Promise.all([1, 2, 3, 4, 9].map((id) => rowIn(view, id))),
      parked: await view.parked(),
      checkpoint: await checkpoint(),
      build: (await view.building())?.storeId,
    });
    return { connection, clock, generation, content };
  }

  const other = showing({ id: 1, accountId: 8 });
  const calls: Readonly<
    Record<string, (view: View, there: Awaited<ReturnType<typeof filled>>) => Promise<unknown>>
  > = {
    erase: (view) => view.erase(9),
    replace: (view) => view.replace(1, [other]),
    'replace of what is parked': (view) => view.replace(9, [showing({ id: 9 })]),
    retry: (view) => view.retry([showing({ id: 9 })]),
    apply: (view, { generation }) =>
      view.apply([hiding(1), showing({ id: 4 }), { ...odd, position: 12 }], { generation, position: 13 }),
    reset: (view) => view.reset('store-2', 7),
    'switch to a build': async (view) => {
      const { generation } = await view.startBuild({ storeId: 'store-1', servesFrom: 99 });
      await view.apply([other], { generation, position: 99 });
      expect(await view.serveBuild(generation)).toBe(true);
    },
    'start of a build from another store': (view) => view.startBuild({ storeId: 'store-2', servesFrom: 99 }),
  };

  test.each(Object.entries(calls))(
    'before any write of %s fails, and the same call completes it',
    async (_, call) => {
      const whole = await filled();
      const all = new Steps();
      await call(openMongoView({ ...whole, connection: beforeWrites(whole.connection, all.before) }), whole);
      const expected = await whole.content();
      const first = all.done.findIndex((write) => !write.startsWith('schema'));
      for (let most = first; most < all.done.length; most++) {
        const there = await filled();
        const steps = new Steps(most);
        const ending = openMongoView({ ...there, connection: beforeWrites(there.connection, steps.before) });
        await expect(call(ending, there)).rejects.toThrow('ended before');
        await call(openMongoView(there), there);
        expect([most, await there.content()]).toEqual([most, expected]);
      }
    },
  );

  test('by a switch at any write of an erasure leaves the row in neither view', async () => {
    const all = new Steps();
    const first = await switching(all.before);
    await first.erasing.erase(1);
    expect(all.done.length).toBeGreaterThan(2);
    for (const at of all.done.keys()) {
      let count = 0;
      const { view, erasing, build } = await switching(async () => {
        if (count++ === at) expect(await view.serveBuild(build)).toBe(true);
      });
      await erasing.erase(1);
      expect([at, await rowIn(view, 1)]).toEqual([at, 'hidden']);
      expect([at, (await view.checkpoint())?.generation]).toEqual([at, build]);
    }
  });

  /** A served view and a complete build, both with row 1. */
  async function switching(before: (write: string) => void | Promise<void>) {
    const connection = mongodb();
    const clock = new FakeClock();
    const view = openMongoView({ connection, clock });
    await view.checkpoint(); // has the collections prepared
    const erasing = openMongoView({ connection: beforeWrites(connection, before), clock });
    const { generation } = await view.reset('store-1', 0);
    await view.apply([showing({ id: 1 })], { generation, position: 1 });
    const { generation: build } = await view.startBuild({ storeId: 'store-1', servesFrom: 0 });
    await view.apply([showing({ id: 1 })], { generation: build, position: 1 });
    return { connection, view, erasing, build };
  }

  test('leaves, when it is not, only the collections of what is served and built', async () => {
    const { connection, clock } = await filled();
    const view = openMongoView({ connection, clock });
    const numbers = async (): Promise<number[]> => {
      const found = await connection.use((db) => db.listCollections({ name: /^transactions_/ }).toArray());
      return [...new Set(found.map(({ name }) => Number(/\d+$/.exec(name)?.[0])))].sort((a, b) => a - b);
    };
    const first = (await view.building())?.generation ?? 0;
    await view.apply([showing({ id: 1 })], { generation: first, position: 99 });
    const served = await view.reset('store-1', 0);
    await view.apply([showing({ id: 1 })], { generation: served.generation, position: 1 });
    expect(await numbers()).toEqual([first, served.generation]);
    const { generation } = await view.startBuild({ storeId: 'store-2', servesFrom: 1 });
    expect(await numbers()).toEqual([served.generation]);
    await view.apply([showing({ id: 2 })], { generation, position: 1 });
    expect(await view.serveBuild(generation)).toBe(true);
    expect(await numbers()).toEqual([generation]);
  });

  test('leaves no build of an older rendering to be continued', async () => {
    const { connection, clock } = await filled();
    const view = openMongoView({ connection, clock });
    const older = (await view.building())?.generation ?? 0;
    await connection.use((db) =>
      db
        .collection<{ _id: string }>('view_checkpoint')
        .updateOne({ _id: 'transactions-build' }, { $inc: { rendering: -1 } }),
    );
    expect((await view.startBuild({ storeId: 'store-1', servesFrom: 99 })).generation).toBeGreaterThan(older);
    expect(await view.apply([], { generation: older, position: 99 })).toBe('reset');
  });

  test('by a kill right after a switch leaves no build, and the next one begins', async () => {
    const { connection, view, build } = await switching(() => undefined);
    const left = await connection.use((db) =>
      db.collection<{ _id: string }>('view_checkpoint').findOne({ _id: 'transactions-build' }),
    );
    expect(await view.serveBuild(build)).toBe(true);
    if (left !== null) {
      await connection.use((db) => db.collection<{ _id: string }>('view_checkpoint').insertOne(left));
    }
    expect(await view.building()).toBeUndefined();
    expect((await view.startBuild({ storeId: 'store-1', servesFrom: 0 })).generation).toBeGreaterThan(build);
    expect(await rowIn(view, 1)).toMatchObject({ id: 1 });
  });
});

/** The connection, with what another process does before each use. */
function beforeUse(connection: MongoConnection, work: () => Promise<void>): MongoConnection {
  const get = (whole: MongoConnection, name: string | symbol): unknown => {
    if (name === 'use') {
      return async <T>(operation: (db: Db) => Promise<T>): Promise<T> => {
        await work();
        return whole.use(operation);
      };
    }
    const value: unknown = Reflect.get(whole, name, whole);
    return typeof value === 'function' ? value.bind(whole) : value;
  };
  return new Proxy(connection, { get });
}

/** The rows, with what another process does before each write. */
function beforeWriting(rows: Generation['rows'], work: () => Promise<void>): Generation['rows'] {
  const get = (whole: typeof rows, name: string | symbol): unknown => {
    const value: unknown = Reflect.get(whole, name, whole);
    if (typeof value !== 'function') return value;
    if (name !== 'bulkWrite') return value.bind(whole);
    return async (...given: unknown[]): Promise<unknown> => {
      await work();
      return value.apply(whole, given);
    };
  };
  return new Proxy(rows, { get });
}
