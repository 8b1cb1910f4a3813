import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { CONTROL_STORE, openCoordination } from '../../../src/base/coordination/stored-coordination.ts';
import { MongoConnection } from '../../../src/engines/mongodb/driver/connection.ts';
import { createMongoRateWindows } from '../../../src/engines/mongodb/rate-windows.ts';
import { openMongoTables } from '../../../src/engines/mongodb/tables/tables.ts';
import { allowed, rateWindowsContract } from '../../contracts/rate-windows.contract.ts';
import { Mongod } from '../../support/engines/mongod.ts';
import { describeWithMongodb, freshDatabase, mongodb } from '../../support/engines/mongodb.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { until } from '../../support/waiting.ts';

function windowsIn(database = freshDatabase()) {
  const connection = mongodb(database);
  const clock = new FakeClock();
  /** Time passes, for the process and for the server. */
  const pass = (ms: number): Promise<void> =>
    connection.use(async (db) => {
      clock.advance(ms);
      await db
        .collection('rate_windows')
        .updateMany({}, [{ $set: { ends_at: { $subtract: ['$ends_at', ms] } } }]);
    });
  return { windows: createMongoRateWindows({ connection, clock }), connection, clock, pass };
}

describeWithMongodb('rate windows on MongoDB', () => {
  rateWindowsContract(async () => windowsIn());

  test('are one for all processes: simultaneous hits of several never let more through', async () => {
    const database = freshDatabase();
    const processes = [windowsIn(database), windowsIn(database), windowsIn(database)];
    for (const round of [1, 2]) {
      const let_through = await Promise.all(
        processes.map(({ windows }) => allowed(windows, { limit: 60, hits: 40 })),
      );
      expect(
        let_through.reduce((sum, count) => sum + count),
        `round ${round}`,
      ).toBe(60);
      for (const { clock } of processes.slice(1)) clock.advance(60_000);
      await processes[0]?.pass(60_000);
    }
  });

  test('refuse a key that is at its limit without asking the server again, until its window ends', async () => {
    const { windows, connection, pass } = windowsIn();
    expect(await allowed(windows, { limit: 3, hits: 4 })).toBe(3);
    await connection.use((db) => db.collection('rate_windows').deleteMany({}));
    expect(await allowed(windows, { limit: 3, hits: 4 })).toBe(0);
    await pass(60_000);
    expect(await allowed(windows, { limit: 3, hits: 4 })).toBe(3);
  });

  test('take one round trip per hit, also where a window restarts', async () => {
    const { windows, connection, pass } = windowsIn();
    await windows.hit('key', 5);
    await connection.use((db) => db.command({ profile: 2 }));
    await windows.hit('key', 5);
    await pass(60_000);
    await windows.hit('key', 5);
    await windows.hit('new', 5);
    const asked = await connection.use(async (db) => {
      await db.command({ profile: 0 });
      return db.collection('system.profile').countDocuments({ 'command.findAndModify': 'rate_windows' });
    });
    expect(asked).toBe(3);
  });

  test('are removed by the server when they have ended', async () => {
    const { windows, connection } = windowsIn();
    await windows.hit('key', 1);
    const indexes = await connection.use((db) => db.collection('rate_windows').indexes());
    expect(indexes).toContainEqual(expect.objectContaining({ key: { ends_at: 1 }, expireAfterSeconds: 0 }));
  });
});

describe.runIf(inject('mongodBinary') !== undefined)('while MongoDB is unavailable', () => {
  let mongod: Mongod;
  let connection: MongoConnection;
  beforeAll(async () => {
    mongod = await new Mongod({ binary: inject('mongodBinary') ?? '' }).start();
    connection = new MongoConnection({ url: mongod.url, database: 'fuel' });
  });
  afterAll(async () => {
    await connection.close();
    await mongod.remove();
  });

  /** The code that the work rejects with, in good time for an answer within 2 s. */
  async function refusal(work: Promise<unknown>): Promise<unknown> {
    const startedAt = performance.now();
    const code = await work.then(
      () => 'done',
      (error: { code?: unknown }) => error.code,
    );
    expect(performance.now() - startedAt).toBeLessThan(1_900);
    return code;
  }

  test('a hit is refused with STORE_UNAVAILABLE in good time, frozen or killed, and counted when it is available again', async () => {
    const windows = createMongoRateWindows({ connection });
    const coordination = openCoordination(openMongoTables(CONTROL_STORE, { connection }));
    expect(await windows.hit('key', 2)).toEqual({ allowed: true });
    expect(await coordination.acquire('projector', 'a', 3_000)).toBe(true);

    mongod.signal('SIGSTOP');
    onTestFinished(() => mongod.signal('SIGCONT'));
    const asked = coordination.acquire('projector', 'a', 3_000);
    expect(await refusal(windows.hit('other', 2))).toBe('STORE_UNAVAILABLE');
    await expect(asked).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    mongod.signal('SIGCONT');
    await until(async () => (await refusal(windows.hit('key', 100))) === 'done', 5_000);

    await mongod.kill();
    expect(await refusal(windows.hit('other', 2))).toBe('STORE_UNAVAILABLE');
    await mongod.start();
    await until(async () => (await refusal(windows.hit('third', 2))) === 'done', 10_000);
    expect(await coordination.acquire('projector', 'a', 3_000)).toBe(true);
  });
});
