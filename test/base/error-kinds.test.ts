import { join } from 'node:path';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { errorKind, FuelError, isUnavailable, reasonOf } from '../../src/base/errors.ts';
import { toKnownError } from '../../src/engines/eventstoredb/driver/errors.ts';
import { Database } from '../../src/engines/sqlite/driver/database.ts';
import { describeWithMongodb, mongodb } from '../support/engines/mongodb.ts';
import { eventStoreDbAt, eventStoreDbOnDouble } from '../support/event-store/eventstoredb-under-test.ts';
import { named } from '../support/event-store/store-events.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const MIB = 1024 * 1024;

test('an error is of one kind, by its code; what has none is a fault of the program', () => {
  const kindOf = (code: ConstructorParameters<typeof FuelError>[0]) => errorKind(new FuelError(code, 'x'));
  expect(['STORE_UNAVAILABLE', 'STORE_BUSY'].map((code) => kindOf(code as 'STORE_BUSY'))).toEqual([
    'unavailable',
    'unavailable',
  ]);
  expect([kindOf('STORE_CLOSED'), kindOf('ITEM_REFUSED')]).toEqual(['closed', 'refused']);
  expect([kindOf('STORE_MISMATCH'), kindOf('REFUSED'), errorKind(new TypeError('x'))]).toEqual([
    'fault',
    'fault',
    'fault',
  ]);
  expect([isUnavailable(new FuelError('STORE_BUSY', 'x')), isUnavailable(new Error('x'))]).toEqual([
    true,
    false,
  ]);
});

test('a fault is named as what it is, an error of this service by its message', () => {
  expect(reasonOf(new TypeError('x is not a function'))).toBe('TypeError: x is not a function');
  expect(reasonOf(new FuelError('ITEM_REFUSED', 'too large'))).toBe('too large');
  expect(reasonOf('thrown as text')).toBe('thrown as text');
});

describe('SQLite', () => {
  function opened(): Database {
    const migrations = ['CREATE TABLE items (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT'];
    const path = join(temporaryFolder(), 'items.db');
    const db = new Database(path, { migrations, durability: 'normal' });
    onTestFinished(() => db.close());
    return db;
  }

  test('refuses a row that breaks a rule of the file, and takes the next one', async () => {
    const db = opened();
    const insert = db.prepare('INSERT INTO items (id, text) VALUES (?, ?)');
    await db.write(() => insert.run(1, 'a'));
    const again = db.write(() => insert.run(1, 'b'));
    await expect(again).rejects.toMatchObject({
      code: 'ITEM_REFUSED',
      message: expect.stringContaining('items'),
    });
    await expect(db.write(() => insert.run(2, null))).rejects.toMatchObject({ code: 'ITEM_REFUSED' });
    await db.write(() => insert.run(2, 'c'));
  });

  test('is unavailable while its disk is full, and continues when there is space', async () => {
    const db = opened();
    const insert = db.prepare('INSERT INTO items (id, text) VALUES (?, ?)');
    db.exec('PRAGMA max_page_count = 4');
    const large = 'x'.repeat(MIB);
    await expect(db.write(() => insert.run(1, large))).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    db.exec('PRAGMA max_page_count = 1000000');
    await db.write(() => insert.run(1, large));
  });

  test('hands on a fault of the program as it is, and rolls back', async () => {
    const db = opened();
    const insert = db.prepare('INSERT INTO items (id, text) VALUES (?, ?)');
    const fault = new TypeError('a fault');
    const failing = db.write(() => {
      insert.run(1, 'a');
      throw fault;
    });
    await expect(failing).rejects.toBe(fault);
    await db.write(() => insert.run(1, 'a'));
  });
});

describeWithMongodb('MongoDB', () => {
  interface Item {
    readonly _id: number;
    readonly text: string;
  }

  test('refuses a document that is too large, or that a change would make so', async () => {
    const connection = mongodb();
    const items = <T>(work: (items: import('mongodb').Collection<Item>) => Promise<T>): Promise<T> =>
      connection.use((db) => work(db.collection<Item>('items')));
    const refused = { code: 'ITEM_REFUSED', message: expect.stringContaining('MongoDB refuses an item') };
    await expect(items((all) => all.insertOne({ _id: 1, text: 'x'.repeat(17 * MIB) }))).rejects.toMatchObject(
      refused,
    );
    await items((all) => all.insertOne({ _id: 2, text: 'x'.repeat(9 * MIB) }));
    const twice = [{ $set: { more: '$text' } }];
    await expect(items((all) => all.updateOne({ _id: 2 }, twice))).rejects.toMatchObject(refused);
    await expect(
      items((all) => all.bulkWrite([{ updateOne: { filter: { _id: 2 }, update: twice } }])),
    ).rejects.toMatchObject(refused);
  });

  test('refuses what cannot be written as a document, and hands on what is no error of it', async () => {
    const connection = mongodb();
    const circular: Record<string, unknown> = {};
    circular.self = circular;
    await expect(connection.use((db) => db.collection('items').insertOne(circular))).rejects.toMatchObject({
      code: 'ITEM_REFUSED',
    });
    const fault = new TypeError('a fault');
    await expect(connection.use(() => Promise.reject(fault))).rejects.toBe(fault);
  });
});

describe.each(['the double', ...(inject('eventstoreUrl') === undefined ? [] : ['a real EventStoreDB'])])(
  'EventStoreDB, %s',
  (engine) => {
    test('refuses an append that is too large, and takes the others of the same call', async () => {
      const url = inject('eventstoreUrl') ?? '';
      const store = engine === 'the double' ? await eventStoreDbOnDouble() : eventStoreDbAt(url);
      onTestFinished(() => store.close());
      const [large, small] = [crypto.randomUUID(), crypto.randomUUID()];
      const event = { ...named('large'), data: { text: 'x'.repeat(2 * MIB) } };
      const appending = store.append([{ stream: `account-${large}`, expected: 'none', events: [event] }]);
      await expect(appending).rejects.toMatchObject({ code: 'ITEM_REFUSED' });
      const [taken] = await store.append([
        { stream: `account-${small}`, expected: 'none', events: [named('small')] },
      ]);
      expect(taken).toMatchObject({ kind: 'appended' });
      expect(await store.readStream(`account-${large}`)).toEqual([]);
    });
  },
);

test('an error of gRPC counts as unavailable by its status, also a connection cut in the middle', () => {
  const kindOf = (code: number) => errorKind(toKnownError(Object.assign(new Error('x'), { code })));
  expect([1, 4, 10, 13, 14].map(kindOf)).toEqual(Array(5).fill('unavailable'));
  expect(kindOf(3)).toBe('refused');
  expect([2, 7, 16].map(kindOf)).toEqual(['fault', 'fault', 'fault']);
});
