import { MongoServerError } from 'mongodb';
import { describe, expect, test } from 'vitest';
import {
  type CollectionsPlan,
  collectionsOf,
  retryUpsert,
  versionOf,
} from '../../../src/engines/mongodb/driver/collections.ts';
import type { MongoConnection } from '../../../src/engines/mongodb/driver/connection.ts';
import { beforeWrites } from '../../support/engines/interposed-mongodb.ts';
import { describeWithMongodb, mongodb } from '../../support/engines/mongodb.ts';
import { Steps } from '../../support/interposed.ts';

const PLAN: CollectionsPlan = {
  name: 'things',
  version: 2,
  collections: { things: [{ key: { name: 1 }, unique: true }], others: [] },
};
const LATER: CollectionsPlan = {
  name: PLAN.name,
  version: 3,
  collections: { things: [{ key: { size: 1 } }], more: [{ key: { size: 1 } }] },
};

describeWithMongodb('the collections of an adapter', () => {
  /** Makes them, and returns the writes that it took. */
  const made = async (connection: MongoConnection, plan: CollectionsPlan, steps = new Steps()) => {
    await collectionsOf(beforeWrites(connection, steps.before), plan).use(10_000, async () => undefined);
    return steps.done;
  };
  const ofVersion2 = async () => {
    const connection = mongodb();
    await made(connection, PLAN);
    return connection;
  };
  const expectLater = async (connection: MongoConnection) => {
    const found = await connection.use((db) => db.listCollections().toArray());
    expect(found.map(({ name }) => name).sort()).toEqual(['more', 'schema_versions', 'things']);
    for (const name of ['things', 'more']) {
      const indexes = await connection.use((db) => db.collection(name).indexes());
      expect(indexes).toContainEqual(expect.objectContaining({ key: { size: 1 } }));
    }
    expect(await versionOf(connection, PLAN.name)).toBe(LATER.version);
  };

  test('are made once for each version: after that only the version is read, which makes nothing', async () => {
    const connection = mongodb();
    expect(await versionOf(connection, PLAN.name)).toBeUndefined();
    expect(await connection.use((db) => db.listCollections().toArray())).toEqual([]);
    for (const plan of [PLAN, LATER]) {
      await made(connection, plan);
      expect(await made(connection, plan)).toEqual([]);
    }
    await expectLater(connection);
  });

  test('whose preparation ended between two steps have their former version, and the next start completes them', async () => {
    const all = await made(await ofVersion2(), LATER);
    expect(all).toEqual(['things.createIndexes', 'more.createIndexes', 'schema_versions.updateOne']);
    for (const steps of all.keys()) {
      const connection = await ofVersion2();
      await expect(made(connection, LATER, new Steps(steps))).rejects.toThrow('ended before');
      expect(await versionOf(connection, PLAN.name)).toBe(PLAN.version);
      await made(connection, LATER);
      await expectLater(connection);
    }
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
