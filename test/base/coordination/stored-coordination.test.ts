import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { CONTROL_STORE, openCoordination } from '../../../src/base/coordination/stored-coordination.ts';
import { MongoConnection } from '../../../src/engines/mongodb/driver/connection.ts';
import { openMongoTables } from '../../../src/engines/mongodb/tables/tables.ts';
import { coordinationContract } from '../../contracts/coordination.contract.ts';
import { memoryCoordination } from '../../support/engines/coordination.ts';
import { MemoryStores } from '../../support/engines/memory-stores.ts';
import { describeWithMongodb, freshDatabase, mongodb, mongodbUrl } from '../../support/engines/mongodb.ts';
import { CuttablePort } from '../../support/event-store/eventstoredb-double/cuttable-port.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const HOUR_MS = 3_600_000;
const FOREVER = new Date(8_640_000_000_000_000);

describe('coordination on SQLite', () => {
  coordinationContract(async () => {
    const [clock, stores] = [new FakeClock(), new MemoryStores()];
    const second = () => memoryCoordination(clock, stores);
    return {
      coordination: second(),
      second,
      pass: async (ms) => clock.advance(ms),
      nowMs: () => clock.now(),
    };
  });

  test('forgets processes that died a day ago', async () => {
    const [clock, stores] = [new FakeClock(), new MemoryStores()];
    const place = { pid: 1, host: 'elsewhere', roles: [], startedAtMs: 0, seenAtMs: 0, isReady: true };
    await memoryCoordination(clock, stores).report({ ...place, id: 'dead' });
    clock.advance(25 * HOUR_MS);
    await memoryCoordination(clock, stores).report({ ...place, id: 'p' });
    clock.advance(-25 * HOUR_MS);
    expect(await memoryCoordination(clock, stores).live(5_000)).toEqual([]);
  });
});

const mongoCoordination = (connection: MongoConnection) =>
  openCoordination(openMongoTables(CONTROL_STORE, { connection }));

function coordinationIn(database = freshDatabase()) {
  const connection = mongodb(database);
  /** Lets time pass by making everything that the server has dated older. */
  const pass = (ms: number): Promise<void> =>
    connection.use(async (db) => {
      const earlier = (field: string) => [{ $set: { [field]: { $subtract: [`$${field}`, ms] } } }];
      await db.collection('leases').updateMany({ expires_at: { $lt: FOREVER } }, earlier('expires_at'));
      await db.collection('live_processes').updateMany({}, earlier('seen_at'));
    });
  return { connection, coordination: mongoCoordination(connection), pass };
}

describeWithMongodb('coordination on MongoDB', () => {
  coordinationContract(async () => {
    const database = freshDatabase();
    const { coordination, pass } = coordinationIn(database);
    const second = () => mongoCoordination(mongodb(database));
    return { coordination, second, pass, nowMs: () => Date.now() };
  });

  /** Makes the clock of this process differ from the server's. */
  const setApart = (ms: number): void => {
    vi.useRealTimers();
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + ms });
    onTestFinished(() => {
      vi.useRealTimers();
    });
  };

  test.each([
    ['an hour behind', -HOUR_MS],
    ['an hour ahead', HOUR_MS],
  ])('ends a lease by the server’s clock, also for a process whose clock is %s', async (_, apartMs) => {
    const { coordination, pass } = coordinationIn();
    onTestFinished(() => coordination.close());
    const serverMs = Date.now();
    for (const [first, second] of [
      [0, apartMs],
      [apartMs, 0],
      [apartMs, apartMs],
    ] as const) {
      const lease = `${first} ${second}`;
      setApart(first);
      expect(await coordination.acquire(lease, 'a', 10_000)).toBe(true);
      setApart(second);
      expect(await coordination.acquire(lease, 'b', 10_000)).toBe(false);
      const held = await coordination.holder(lease);
      expect(held).toEqual({ holder: 'a', expiresAtMs: expect.any(Number) });
      expect(Math.abs((held?.expiresAtMs ?? 0) - serverMs - 10_000)).toBeLessThan(10_000);
      expect(await coordination.acquire(lease, 'a', 20_000)).toBe(true);
      await pass(12_000);
      expect(await coordination.acquire(lease, 'b', 10_000)).toBe(false);
      await pass(8_000);
      expect(await coordination.holder(lease)).toBeUndefined();
      expect(await coordination.acquire(lease, 'b', 10_000)).toBe(true);
    }
  });

  test.each([
    ['an hour behind', -HOUR_MS],
    ['an hour ahead', HOUR_MS],
  ])(
    'lists live processes by the server’s clock, also for a process whose clock is %s',
    async (_, apartMs) => {
      const { coordination, pass } = coordinationIn();
      onTestFinished(() => coordination.close());
      const place = { pid: 1, host: 'elsewhere', roles: [], startedAtMs: 0, isReady: true };
      setApart(apartMs);
      await coordination.report({ ...place, id: 'p', seenAtMs: Date.now() });
      for (const ms of [0, apartMs]) {
        setApart(ms);
        expect((await coordination.live(5_000)).map(({ id }) => id)).toEqual(['p']);
      }
      await pass(5_000);
      for (const ms of [0, apartMs]) {
        setApart(ms);
        expect(await coordination.live(5_000)).toEqual([]);
      }
    },
  );

  test('uses the server’s clock, whatever time a process reports', async () => {
    const { coordination, pass } = coordinationIn();
    onTestFinished(() => coordination.close());
    const roles: string[] = [];
    const place = { pid: 1, host: 'elsewhere', roles, startedAtMs: 0, isReady: true };
    await coordination.report({ ...place, id: 'slow', seenAtMs: 0 });
    await coordination.report({ ...place, id: 'fast', seenAtMs: Date.now() + 3_600_000 });
    expect((await coordination.live(5_000)).map(({ id }) => id)).toEqual(['fast', 'slow']);
    await pass(5_000);
    expect(await coordination.live(5_000)).toEqual([]);
  });

  test('rejects within three seconds where MongoDB does not answer', async () => {
    const url = new URL(mongodbUrl());
    const port = await CuttablePort.open({ port: 0, target: Number(url.port) });
    url.port = String(port.port);
    const connection = new MongoConnection({ url: url.href, database: freshDatabase() });
    onTestFinished(async () => {
      await connection.close();
      await port.close();
    });
    const coordination = mongoCoordination(connection);
    expect(await coordination.acquire('projector', 'a', 10_000)).toBe(true);
    port.freeze();
    const startMs = performance.now();
    const renewal = coordination.acquire('projector', 'a', 10_000);
    await expect(renewal).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect(performance.now() - startMs).toBeLessThan(3_000); // while the lease still lasts
  });

  test('does not write to a lease of another holder', async () => {
    const { coordination, connection } = coordinationIn();
    onTestFinished(() => coordination.close());
    await coordination.acquire('projector', 'a', 10_000);
    const stored = () => connection.use((db) => db.collection('leases').find().toArray());
    const before = await stored();
    await coordination.acquire('projector', 'b', 60_000);
    expect(await stored()).toEqual(before);
  });
});
