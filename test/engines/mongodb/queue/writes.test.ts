import type { Document } from 'mongodb';
import { expect, onTestFinished, test } from 'vitest';
import type { MongoConnection } from '../../../../src/engines/mongodb/driver/connection.ts';
import { laneHeads } from '../../../../src/engines/mongodb/queue/claim.ts';
import { openMongoDeliveryQueue } from '../../../../src/engines/mongodb/queue/queue.ts';
import { whereOf } from '../../../../src/engines/mongodb/queue/reads.ts';
import { heldAccountsPipeline } from '../../../../src/engines/mongodb/queue/work.ts';
import { selectionOf } from '../../../../src/engines/stored/delivery-index.ts';
import type { ClaimedDelivery } from '../../../../src/push/queue/delivery.ts';
import type { DeliveryQueue } from '../../../../src/push/queue/delivery-queue.ts';
import {
  claimOptions,
  delivered,
  failed,
  held,
  newDelivery,
} from '../../../support/deliveries/deliveries.ts';
import { countByState } from '../../../support/deliveries/listed.ts';
import { beforeWrites } from '../../../support/engines/interposed-mongodb.ts';
import { describeWithMongodb, mongodb } from '../../../support/engines/mongodb.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { within } from '../../../support/waiting.ts';

describeWithMongodb('the delivery queue on MongoDB, beyond its contract', () => {
  const openOn = (connection: MongoConnection, clock = new FakeClock()): DeliveryQueue => {
    const queue = openMongoDeliveryQueue({ connection, clock, pollMs: 20 });
    onTestFinished(() => queue.close());
    return queue;
  };
  /** With something that another process does right before the first such write to the deliveries. */
  const overtaken = (connection: MongoConnection, write: string, work: () => Promise<unknown>) => {
    let isDone = false;
    const before = async (next: string): Promise<void> => {
      if (isDone || next !== `deliveries.${write}`) return;
      isDone = true;
      await work();
    };
    return openOn(beforeWrites(connection, before));
  };
  const one = newDelivery(1);

  test('finds due work, held accounts, a page and what is to be purged by an index of each, without sorting', async () => {
    const connection = mongodb();
    await openOn(connection).enqueue([one]);
    const planOf = (command: Document): Promise<string> =>
      connection.use(async (db) =>
        stagesOf(await db.command({ explain: command, verbosity: 'queryPlanner' })),
      );
    const find = (filter: Document, more: Document): Promise<string> =>
      planOf({ find: 'deliveries', filter, ...more });
    const aggregate = (pipeline: Document[], hint?: string): Promise<string> =>
      planOf({ aggregate: 'deliveries', pipeline, cursor: {}, ...(hint && { hint }) });
    const dueOnly = { projection: { prefix: 1 }, hint: 'due', sort: { due_at: 1, prefix: 1 }, limit: 5 };
    expect(await find({ due_at: { $lte: 1 } }, dueOnly)).toBe('LIMIT PROJECTION_COVERED IXSCAN due');
    expect(await aggregate(laneHeads(), 'due_in_lane')).toBe('PROJECTION_COVERED DISTINCT_SCAN due_in_lane');
    expect(await aggregate(heldAccountsPipeline(), 'held')).toBe('PROJECTION_COVERED DISTINCT_SCAN held');
    const oldest = { projection: { prefix: 1 }, hint: 'due_in_lane', sort: { due_at: 1 }, limit: 5 };
    expect(await find({ state: 'pending', prefix: 'a', due_at: { $lte: 1 } }, oldest)).toBe(
      'LIMIT PROJECTION_COVERED IXSCAN due_in_lane',
    );
    const ended = { hint: 'ended', sort: { ended_at: 1 }, limit: 5 };
    expect(await find({ ended_at: { $lt: 1 } }, ended)).toBe('LIMIT FETCH IXSCAN ended');
    const pageOf = (filter: Parameters<typeof selectionOf>[0]): Promise<string> => {
      const { index, inIndex, others } = selectionOf(filter, ['pending', 'held', 'failed', 'withdrawn']);
      const where = whereOf([...inIndex, ...others], { createdAtMs: 5, id: 'x' });
      return find(where, { hint: index, sort: { created_at: -1, _id: -1 }, limit: 5 });
    };
    expect(await pageOf({})).toBe('LIMIT FETCH IXSCAN by_time');
    expect(await pageOf({ prefix: 'a', sinceMs: 1 })).toBe('LIMIT FETCH IXSCAN by_lane');
    expect(await pageOf({ accountId: 1 })).toBe('LIMIT FETCH IXSCAN by_account');
    expect(await pageOf({ transactionId: 1 })).toBe('LIMIT FETCH IXSCAN by_transaction');
    for (const state of ['pending', 'held', 'failed', 'withdrawn'] as const) {
      expect(await pageOf({ state, prefix: 'a' })).toBe('LIMIT FETCH IXSCAN by_state');
    }
  });

  test('claims the longest waiting lanes first where hundreds have something due', async () => {
    const queue = openOn(mongodb());
    const lanes = Array.from({ length: 300 }, (_, n) => `lane${999 - n}`);
    await queue.enqueue(
      lanes.flatMap((prefix, n) => [
        newDelivery(1, { prefix, createdAtMs: 1_000 + n }),
        newDelivery(2, { prefix, createdAtMs: 1_500 + n }),
      ]),
    );
    const blocked = new Set(lanes.slice(0, 120));
    const laneCapacity = (prefix: string): number => (blocked.has(prefix) ? 0 : 1);
    const claimed = await queue.claim(claimOptions(9_000, { limit: 70, laneCapacity }));
    expect(claimed.map(({ prefix }) => prefix)).toEqual(lanes.slice(120, 190));
    expect(claimed.every(({ transactionId }) => transactionId === 1)).toBe(true);
    const both = await queue.claim(claimOptions(9_000, { limit: 3, laneCapacity: () => 2 }));
    expect(both.map(({ prefix, transactionId }) => [prefix, transactionId])).toEqual([
      [lanes[0], 1],
      [lanes[0], 2],
      [lanes[1], 1],
    ]);
  });

  test('withdraws what a process stored and died before it looked for withdrawals', async () => {
    const connection = mongodb();
    const queue = openOn(connection);
    await queue.enqueue([one, newDelivery(2)]);
    await connection.use((db) =>
      db.collection<{ _id: number }>('withdrawals').insertMany([{ _id: 1 }, { _id: 2 }]),
    );
    await queue.enqueue([one]);
    expect(await queue.find(one.id)).toMatchObject({ state: 'withdrawn', dueAtMs: null });
    expect(await queue.claim(claimOptions(9_000))).toEqual([]);
    expect(await countByState(queue)).toMatchObject({ withdrawn: 2, pending: 0 });
  });

  test('lets no delivery escape a withdrawal that comes just before it is stored or made due again', async () => {
    const connection = mongodb();
    const [queue, other] = [openOn(connection), openOn(connection)];
    const [again, fresh] = [newDelivery(1), newDelivery(2)];
    const [claimed] = await queue.enqueue([again], claimOptions(1_000));
    await queue.report([failed(claimed as ClaimedDelivery, 1_000)]);
    const storing = overtaken(connection, 'insertMany', () => other.withdraw([2], 2_000));
    expect(await storing.enqueue([fresh], claimOptions(1_000))).toEqual([]);
    const makingDue = overtaken(connection, 'updateOne', () => other.withdraw([1], 2_000));
    expect(await makingDue.redeliver(again.id, { force: false, dueAtMs: 1_000 })).toBe('withdrawn');
    expect(await queue.nextDueAtMs()).toBeUndefined();
    expect(await countByState(queue)).toMatchObject({ withdrawn: 2, pending: 0 });
  });

  test('claims nothing twice with a slot that a stored delivery left free, where another process was faster', async () => {
    const connection = mongodb();
    const [queue, other] = [openOn(connection), openOn(connection)];
    const [there] = await queue.enqueue([one], claimOptions(1_000));
    await queue.report([delivered(there as ClaimedDelivery, 1_000)]);
    const claiming = overtaken(connection, 'updateMany', async () => {
      expect(await other.claim(claimOptions(1_000))).toHaveLength(1);
    });
    const options = claimOptions(1_000, { laneCapacity: () => 1 });
    expect(await claiming.enqueue([one, newDelivery(2)], options)).toEqual([]);
    const [held] = await other.claim(claimOptions(6_000));
    expect(held).toMatchObject({ id: newDelivery(2).id });
  });

  test('changes none of a batch that another process has ended or made due again since it was found', async () => {
    const connection = mongodb();
    const [queue, other] = [openOn(connection), openOn(connection)];
    const owed = [1, 2, 3].map((n) => newDelivery(n));
    const [a, b, c] = (await queue.enqueue(owed, claimOptions(1_000))) as [
      ClaimedDelivery,
      ClaimedDelivery,
      ClaimedDelivery,
    ];
    await queue.report([held(a), failed(c, 1_000)]);
    const resuming = overtaken(connection, 'updateMany', () => other.withdraw([1], 2_000));
    expect(await resuming.resume(7, 3_000)).toBe(0);
    const ending = overtaken(connection, 'updateMany', () => other.report([delivered(b, 2_000)]));
    expect(await ending.endLane(one.prefix, 'off', 3_000)).toBe(0);
    const purging = overtaken(connection, 'deleteMany', () =>
      other.redeliver(c.id, { force: false, dueAtMs: 9_000 }),
    );
    expect(await purging.purge(2_000, 1)).toBe(0);
    const states = await Promise.all([a, b, c].map(async ({ id }) => (await queue.find(id))?.state));
    expect(states).toEqual(['withdrawn', 'delivered', 'pending']);
  });

  test('of two redeliveries at once makes one cycle', async () => {
    const connection = mongodb();
    const [queue, other] = [openOn(connection), openOn(connection)];
    const [claimed] = await queue.enqueue([one], claimOptions(1_000));
    await queue.report([delivered(claimed as ClaimedDelivery, 1_000)]);
    const request = { force: true, dueAtMs: 2_000 };
    const making = overtaken(connection, 'updateOne', () => other.redeliver(one.id, request));
    expect(await making.redeliver(one.id, { ...request, dueAtMs: 9_000 })).toBe('pending');
    expect(await queue.find(one.id)).toMatchObject({ cycle: 2, dueAtMs: 2_000 });
  });

  test('counts a failure once that two processes report at once', async () => {
    const connection = mongodb();
    const [queue, other] = [openOn(connection), openOn(connection)];
    const owed = Array.from({ length: 10 }, (_, n) => newDelivery(n));
    const claimed = await queue.enqueue(owed, claimOptions(1_000));
    const reports = claimed.map((entry) => failed(entry, 1_000));
    await Promise.all([queue.report(reports), other.report(reports.toReversed()), other.report(reports)]);
    expect((await queue.health(one.prefix)).failedInARow).toBe(10);
    for (const { id } of owed) expect(await queue.find(id)).toMatchObject({ attemptsInCycle: 1 });
  });

  test('records no failure whose streak can not be changed, and counts it once when it is reported again', async () => {
    const connection = mongodb();
    const queue = openOn(connection);
    const [first, second] = await queue.enqueue([one, newDelivery(2)], claimOptions(1_000));
    await queue.report([failed(first as ClaimedDelivery, 1_000)]);
    const permit = (validator: Document): Promise<unknown> =>
      connection.use((db) => db.command({ collMod: 'lanes', validator }));
    await permit({ failed_in_a_row: { $lt: 2 } });
    const reports = [failed(second as ClaimedDelivery, 1_000)];
    await expect(queue.report(reports)).rejects.toThrow();
    expect(await queue.find(newDelivery(2).id)).toMatchObject({ state: 'pending', attempts: [] });
    await permit({});
    await queue.report(reports);
    expect((await queue.health(one.prefix)).failedInARow).toBe(2);
  });

  test('records each of a batch once that was refused in its middle, and is reported again', async () => {
    const connection = mongodb();
    const queue = openOn(connection);
    const owed = [1, 2, 3].map((n) => newDelivery(n));
    const claimed = await queue.enqueue(owed, claimOptions(1_000));
    const reports = claimed.map((claim, n) => delivered(claim, 1_000 + n));
    const permit = (validator: Document): Promise<unknown> =>
      connection.use((db) => db.command({ collMod: 'deliveries', validator }));
    await permit({ $nor: [{ _id: newDelivery(2).id, state: 'delivered' }] });
    await expect(queue.report(reports)).rejects.toMatchObject({ code: 'ITEM_REFUSED' });
    expect(await queue.find(newDelivery(2).id)).toMatchObject({ state: 'pending', attempts: [] });
    await permit({});
    await queue.report(reports);
    for (const [n, { id }] of claimed.entries()) {
      const { state, attempts } = (await queue.find(id)) ?? {};
      expect([state, attempts?.map(({ startedAtMs }) => startedAtMs)]).toEqual(['delivered', [1_000 + n]]);
    }
  });

  test('ends a streak by a success although another process has changed the streak meanwhile', async () => {
    const connection = mongodb();
    const [queue, other] = [openOn(connection), openOn(connection)];
    const owed = Array.from({ length: 3 }, (_, n) => newDelivery(n));
    const [a, b, c] = (await queue.enqueue(owed, claimOptions(1_000))) as [
      ClaimedDelivery,
      ...ClaimedDelivery[],
    ];
    await other.report([failed(a, 1_000), failed(b as ClaimedDelivery, 1_000)]);
    const ended = await queue.report([delivered(c as ClaimedDelivery, 2_000)]);
    expect(ended.get(one.prefix)?.failedInARow).toBe(0);
    expect((await other.health(one.prefix)).failedInARow).toBe(0);
  });

  test('notifies when the lease of a process that died ends', async () => {
    const connection = mongodb();
    const clock = new FakeClock();
    const [dead, other] = [openOn(connection, clock), openOn(connection, clock)];
    await dead.enqueue([one], claimOptions(clock.now(), { leaseMs: 5_000 }));
    await dead.close();
    let notifications = 0;
    const heard = Promise.withResolvers<void>();
    other.changed.add({
      notify: () => {
        notifications++;
        heard.resolve();
      },
    });
    expect(await other.claim(claimOptions(clock.now()))).toEqual([]);
    expect(notifications).toBe(0);
    clock.advance(5_000);
    await within(heard.promise, 5_000, 'no notification came');
    expect(await other.claim(claimOptions(clock.now()))).toHaveLength(1);
  });

  test('refuses collections of a newer version, and one name is given however many ask first', async () => {
    const connection = mongodb();
    const names = await Promise.all([1, 2, 3].map(() => openOn(connection).logId()));
    expect(new Set(names.map(({ id }) => id)).size).toBe(1);
    await connection.use((db) =>
      db
        .collection<{ _id: string }>('schema_versions')
        .updateOne({ _id: 'deliveries' }, { $set: { version: 99 } }),
    );
    await expect(openOn(connection).logId()).rejects.toMatchObject({ code: 'STORE_NEWER' });
  });
});

/** The stages of the winning plan from the top, and the index at its bottom. */
function stagesOf(explained: Document): string {
  const planner = explained.queryPlanner ?? explained.stages?.[0]?.$cursor?.queryPlanner;
  const winning = planner.winningPlan;
  const names: string[] = [];
  for (let stage = winning.queryPlan ?? winning; stage !== undefined; stage = stage.inputStage) {
    names.push(stage.stage);
    if (stage.indexName !== undefined) names.push(stage.indexName);
  }
  return names.join(' ');
}
