import { setTimeout as sleep } from 'node:timers/promises';
import { type Db, MongoServerError } from 'mongodb';
import { describe, expect, onTestFinished, test } from 'vitest';
import { inTime, MongoConnection } from '../../../src/engines/mongodb/driver/connection.ts';
import {
  type CollectionsPlan,
  PreparedCollections,
  prepareCollections,
  preparedState,
  retryUpsert,
} from '../../../src/engines/mongodb/driver/prepared-collections.ts';
import { beforeWrites } from '../../support/engines/interposed-mongodb.ts';
import { describeWithMongodb, freshDatabase, mongodb, mongodbUrl } from '../../support/engines/mongodb.ts';
import { CuttablePort } from '../../support/event-store/eventstoredb-double/cuttable-port.ts';
import { Steps } from '../../support/interposed.ts';

const PLAN: CollectionsPlan = {
  name: 'things',
  version: 2,
  collections: { things: [{ key: { name: 1 }, unique: true }], others: [] },
};

const versionIn = (connection: MongoConnection) =>
  connection.use(async (db) => (await db.collection('schema_versions').findOne({}))?.version);

describeWithMongodb('the collections of an adapter', () => {
  const keysOf = async (connection: MongoConnection, collection: string) => {
    const indexes = await connection.use((db) => db.collection(collection).indexes());
    return indexes.map(({ key, unique }) => ({ key, unique }));
  };

  test('are created with their indexes by the first use only', async () => {
    const connection = mongodb();
    const collections = new PreparedCollections(connection, PLAN);
    const things = (db: Db) => db.collection('things').insertOne({});
    await collections.use(5_000, things);
    expect(await keysOf(connection, 'things')).toContainEqual({ key: { name: 1 }, unique: true });
    expect(await versionIn(connection)).toBe(2);
    await connection.use((db) => db.collection('schema_versions').deleteMany({}));
    await collections.use(5_000, (db) => db.command({ ping: 1 }));
    expect(await versionIn(connection)).toBeUndefined();
  });

  test('are created by several processes at once', async () => {
    const database = freshDatabase();
    const uses = Array.from({ length: 4 }, () =>
      new PreparedCollections(mongodb(database), PLAN).use(10_000, (db) => db.command({ ping: 1 })),
    );
    expect(await Promise.all(uses)).toHaveLength(4);
  });

  test('are prepared once they have this version, and asking for it creates nothing', async () => {
    const connection = mongodb();
    const stateAt = (version: number) => preparedState(connection, { ...PLAN, version });
    expect(await stateAt(2)).toBe('missing');
    const names = await connection.use((db) => db.listCollections().toArray());
    expect(names).toEqual([]);
    await connection.use((db) => prepareCollections(db, PLAN));
    expect([await stateAt(2), await stateAt(3)]).toEqual(['current', 'of another version']);
  });

  test('of an older version are upgraded; those of a newer one are refused and stay as they are', async () => {
    const connection = mongodb();
    const prepare = (version: number) => connection.use((db) => prepareCollections(db, { ...PLAN, version }));
    for (const version of [1, 2, 2]) await prepare(version);
    expect(await versionIn(connection)).toBe(2);
    for (let time = 0; time < 2; time++) {
      await expect(prepare(1)).rejects.toMatchObject({
        code: 'STORE_NEWER',
        message: expect.stringContaining('run the newer version'),
      });
      expect(await versionIn(connection)).toBe(2);
    }
  });

  /** Prepares them; says which writes it took. */
  const writesOf = async (connection: MongoConnection, plan: CollectionsPlan, steps = new Steps()) => {
    await beforeWrites(connection, steps.before).use((db) => prepareCollections(db, plan));
    return steps.done;
  };
  const LATER: CollectionsPlan = {
    name: PLAN.name,
    version: 3,
    collections: { things: [{ key: { size: 1 } }], more: [{ key: { size: 1 } }] },
  };
  const names = async (connection: MongoConnection) =>
    (await connection.use((db) => db.listCollections().toArray())).map(({ name }) => name).sort();
  const ofVersion2 = async () => {
    const connection = mongodb();
    await connection.use((db) => prepareCollections(db, PLAN));
    return connection;
  };
  const expectLater = async (connection: MongoConnection) => {
    expect(await names(connection)).toEqual(['more', 'schema_versions', 'things']);
    for (const name of ['things', 'more'])
      expect(await keysOf(connection, name)).toContainEqual({ key: { size: 1 } });
    expect(await versionIn(connection)).toBe(LATER.version);
  };

  test('are prepared once for each version: after that only the version is read', async () => {
    const connection = await ofVersion2();
    for (const plan of [PLAN, LATER]) {
      await writesOf(connection, plan);
      expect(await writesOf(connection, plan)).toEqual([]);
    }
    await expectLater(connection);
  });

  test('whose preparation ended between two steps have their former version, and the next start completes them', async () => {
    const all = await writesOf(await ofVersion2(), LATER);
    expect(all).toEqual(['things.createIndexes', 'more.createIndexes', 'schema_versions.updateOne']);
    for (const steps of all.keys()) {
      const connection = await ofVersion2();
      await expect(writesOf(connection, LATER, new Steps(steps))).rejects.toThrow('ended before');
      expect(await versionIn(connection)).toBe(PLAN.version);
      await connection.use((db) => prepareCollections(db, LATER));
      await expectLater(connection);
    }
  });

  test('that could not be created are created by a later use', async () => {
    const url = new URL(mongodbUrl());
    const port = await CuttablePort.open({ port: 0, target: Number(url.port) });
    url.port = String(port.port);
    const connection = new MongoConnection({ url: url.href, database: freshDatabase() });
    onTestFinished(async () => {
      await connection.close();
      await port.close();
    });
    const collections = new PreparedCollections(connection, PLAN);
    const use = () => collections.use(3_000, (db) => db.command({ ping: 1 }));
    port.freeze();
    await expect(use()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    port.thaw();
    await expect
      .poll(() =>
        use().then(
          () => 'used',
          () => 'unavailable',
        ),
      )
      .toBe('used');
    expect(await versionIn(connection)).toBe(2);
  });

  test('answer in time or reject', async () => {
    const collections = new PreparedCollections(mongodb(), PLAN);
    await collections.use(5_000, (db) => db.command({ ping: 1 }));
    const startMs = performance.now();
    const silent = collections.use(300, () => new Promise<void>(() => undefined));
    await expect(silent).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(299);
    expect(performance.now() - startMs).toBeLessThan(2_000);
  });

  test('leave the connection open when they are closed', async () => {
    const connection = mongodb();
    const collections = new PreparedCollections(connection, PLAN);
    collections.close();
    let isAsked = false;
    const use = collections.use(5_000, async () => {
      isAsked = true;
    });
    await expect(use).rejects.toMatchObject({ code: 'STORE_CLOSED' });
    expect(isAsked).toBe(false);
    await connection.ping();
  });
});

describe('an upsert', () => {
  const duplicate = () => new MongoServerError({ message: 'E11000 duplicate key', code: 11_000 });
  /** Fails this often, and counts the tries. */
  const failing = (times: number, error: () => Error) => {
    const upsert = Object.assign(
      async () => {
        upsert.tries++;
        if (upsert.tries <= times) throw error();
        return 'done';
      },
      { tries: 0 },
    );
    return upsert;
  };

  test('that loses a race is retried, up to five tries', async () => {
    const [four, five] = [failing(4, duplicate), failing(5, duplicate)];
    expect(await retryUpsert(four)).toBe('done');
    await expect(retryUpsert(five)).rejects.toMatchObject({ code: 11_000 });
    expect([four.tries, five.tries]).toEqual([5, 5]);
  });

  test('that fails for another reason is not retried', async () => {
    for (const error of [new RangeError('own'), new MongoServerError({ message: 'no', code: 121 })]) {
      const upsert = failing(1, () => error);
      await expect(retryUpsert(upsert)).rejects.toBe(error);
      expect(upsert.tries).toBe(1);
    }
  });
});

describe('inTime', () => {
  test('passes on an answer, or a failure, as it is', async () => {
    expect(await inTime(1_000, async () => 'answer')).toBe('answer');
    await expect(inTime(1_000, () => Promise.reject(new RangeError('own')))).rejects.toThrow('own');
  });

  test('leaves no timer behind', async () => {
    const before = process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    await inTime(60_000, () => sleep(1));
    const after = process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    expect(after).toBe(before);
  });
});
