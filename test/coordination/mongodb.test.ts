import { expect, onTestFinished, test } from 'vitest';
import { openMongoCoordination } from '../../src/coordination/mongodb.ts';
import { coordinationContract } from '../contracts/coordination.contract.ts';
import { describeWithMongodb, freshDatabase, mongodb } from '../support/mongodb.ts';

function coordinationIn(database = freshDatabase()) {
  const connection = mongodb(database);
  /** Time passes: all that the server dated grows older. */
  const pass = (ms: number): Promise<void> =>
    connection.use(async (db) => {
      const earlier = (field: string) => [{ $set: { [field]: { $subtract: [`$${field}`, ms] } } }];
      await db.collection('leases').updateMany({}, earlier('expires_at'));
      await db.collection('processes').updateMany({}, earlier('seen_at'));
    });
  return { connection, coordination: openMongoCoordination({ connection }), pass };
}

describeWithMongodb('coordination on MongoDB', () => {
  coordinationContract(async () => {
    const database = freshDatabase();
    const { coordination, pass } = coordinationIn(database);
    const second = () => openMongoCoordination({ connection: mongodb(database) });
    return { coordination, second, pass, nowMs: () => Date.now() };
  });

  test('goes by the server’s clock, whatever the clock of a process shows', async () => {
    const { coordination, pass } = coordinationIn();
    onTestFinished(() => coordination.close());
    const roles: string[] = [];
    const place = { pid: 1, host: 'elsewhere', roles, startedAtMs: 0, directoryPosition: 5 };
    await coordination.report({ ...place, id: 'slow', seenAtMs: 0 });
    await coordination.report({ ...place, id: 'fast', seenAtMs: Date.now() + 3_600_000 });
    expect((await coordination.live(5_000)).map(({ id }) => id)).toEqual(['fast', 'slow']);
    await pass(5_000);
    expect(await coordination.live(5_000)).toEqual([]);
  });

  test('lets the server forget processes that died a day ago', async () => {
    const { coordination, connection } = coordinationIn();
    onTestFinished(() => coordination.close());
    await coordination.live(5_000);
    const indexes = await connection.use((db) => db.collection('processes').indexes());
    expect(indexes).toContainEqual(
      expect.objectContaining({ key: { seen_at: 1 }, expireAfterSeconds: 86_400 }),
    );
  });

  test('leaves a lease of another holder unwritten', async () => {
    const { coordination, connection } = coordinationIn();
    onTestFinished(() => coordination.close());
    await coordination.acquire('projector', 'a', 10_000);
    const stored = () => connection.use((db) => db.collection('leases').find().toArray());
    const before = await stored();
    await coordination.acquire('projector', 'b', 60_000);
    expect(await stored()).toEqual(before);
  });
});
