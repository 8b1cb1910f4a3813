import { expect, inject, onTestFinished, test } from 'vitest';
import { CONTROL_STORE, openCoordination } from '../../../src/base/coordination/stored-coordination.ts';
import { MongoConnection } from '../../../src/engines/mongodb/driver/connection.ts';
import { createMongoRateWindows } from '../../../src/engines/mongodb/rate-windows.ts';
import { openMongoTables } from '../../../src/engines/mongodb/tables/tables.ts';
import { Mongod } from '../../support/engines/mongod.ts';
import { describeWithMongodb, mongodb } from '../../support/engines/mongodb.ts';

describeWithMongodb('rate windows on MongoDB', () => {
  test('take one round trip per hit, also where a window restarts', async () => {
    const connection = mongodb();
    const windows = createMongoRateWindows({ connection });
    await windows.hit('key', 5);
    await connection.use((db) => db.command({ profile: 2 }));
    await windows.hit('key', 5);
    await connection.use((db) =>
      db.collection('rate_windows').updateMany({}, { $set: { ends_at: new Date(0) } }),
    );
    await windows.hit('key', 5);
    await windows.hit('new', 5);
    const asked = await connection.use(async (db) => {
      await db.command({ profile: 0 });
      return db.collection('system.profile').countDocuments({ 'command.findAndModify': 'rate_windows' });
    });
    expect(asked).toBe(3);
  });

  test('are removed by the server when they have ended', async () => {
    const connection = mongodb();
    await createMongoRateWindows({ connection }).hit('key', 1);
    const indexes = await connection.use((db) => db.collection('rate_windows').indexes());
    expect(indexes).toContainEqual(expect.objectContaining({ key: { ends_at: 1 }, expireAfterSeconds: 0 }));
  });
});

test.runIf(inject('mongodBinary') !== undefined)(
  'a frozen MongoDB refuses hits and leases in good time, and serves both when it is thawed',
  async () => {
    const mongod = await new Mongod({ binary: inject('mongodBinary') ?? '' }).start();
    onTestFinished(() => mongod.remove());
    const connection = new MongoConnection({ url: mongod.url, database: 'fuel' });
    onTestFinished(() => connection.close());
    const windows = createMongoRateWindows({ connection });
    const coordination = openCoordination(openMongoTables(CONTROL_STORE, { connection }));
    const acquire = () => coordination.acquire('projector', 'a', 3_000);
    expect(await windows.hit('key', 2)).toEqual({ allowed: true });
    expect(await acquire()).toBe(true);
    mongod.signal('SIGSTOP');
    const refused = { code: 'STORE_UNAVAILABLE' };
    const startedAt = performance.now();
    await Promise.all([
      expect(windows.hit('other', 2)).rejects.toMatchObject(refused),
      expect(acquire()).rejects.toMatchObject(refused),
    ]);
    expect(performance.now() - startedAt).toBeLessThan(4_000);
    mongod.signal('SIGCONT');
    await expect.poll(() => windows.hit('key', 100).catch(() => 'refused')).toEqual({ allowed: true });
    await expect.poll(() => acquire().catch(() => 'refused')).toBe(true);
  },
);
