import { describe, expect, onTestFinished, test } from 'vitest';
import type { MongoConnection } from '../../../../src/engines/mongodb/driver/connection.ts';
import { DueFloor } from '../../../../src/engines/mongodb/queue/due-floor.ts';
import { openMongoDeliveryQueue } from '../../../../src/engines/mongodb/queue/queue.ts';
import type { ClaimedDelivery } from '../../../../src/push/queue/delivery.ts';
import type { DeliveryQueue } from '../../../../src/push/queue/delivery-queue.ts';
import {
  claimOf,
  claimOptions,
  failed,
  held,
  newDelivery,
  retryAt,
} from '../../../support/deliveries/deliveries.ts';
import { describeWithMongodb, mongodb } from '../../../support/engines/mongodb.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { within } from '../../../support/waiting.ts';

const find = (first: number | undefined) => async () => first;

/** A look that has begun, and ends with what it has found. */
function lookUnderWay(floor: DueFloor, from: 'floor' | 'start') {
  const { promise, resolve } = Promise.withResolvers<number | undefined>();
  const ended = floor.look(from, () => promise);
  return async (first: number | undefined) => {
    resolve(first);
    return ended;
  };
}

describe('the time before which nothing is due', () => {
  test('is what a look has found first, and falls to what is made due since', async () => {
    const floor = new DueFloor();
    expect(await floor.look('floor', find(500))).toBe(500);
    floor.lower(700);
    expect(floor.atMs).toBe(500);
    floor.lower(300);
    expect(floor.atMs).toBe(300);
    expect(await floor.look('floor', find(undefined))).toBeUndefined();
    expect(floor.atMs).toBe(Number.POSITIVE_INFINITY);
  });

  test('is where a look begins, unless that is one from the start', async () => {
    const floor = new DueFloor();
    const from: number[] = [];
    const found = async (fromMs: number) => {
      from.push(fromMs);
      return 500;
    };
    await floor.look('floor', found);
    await floor.look('floor', found);
    await floor.look('start', found);
    expect(from).toEqual([0, 500, 0]);
  });

  test('is not above what was made due while a look was under way, which may not have seen it', async () => {
    const floor = new DueFloor();
    const end = lookUnderWay(floor, 'floor');
    floor.lower(200);
    expect(await end(500)).toBe(500);
    expect(floor.atMs).toBe(200);
  });

  test('is not above what a look from the start has found, whichever of two looks ends first', async () => {
    for (const order of ['first', 'last'] as const) {
      const floor = new DueFloor();
      await floor.look('floor', find(400));
      const end = { floor: lookUnderWay(floor, 'floor'), start: lookUnderWay(floor, 'start') };
      if (order === 'last') await end.floor(500);
      await end.start(100); // another process has made it due
      if (order === 'first') await end.floor(500);
      expect(floor.atMs, `the look from the start ends ${order}`).toBe(100);
    }
  });

  test('stays where a look fails', async () => {
    const floor = new DueFloor();
    await floor.look('floor', find(500));
    const failing = floor.look('floor', async () => {
      throw new Error('unavailable');
    });
    await expect(failing).rejects.toThrow('unavailable');
    expect(floor.atMs).toBe(500);
  });
});

describeWithMongodb('a polled queue', () => {
  const one = newDelivery(1);
  const openOn = (connection: MongoConnection, clock: FakeClock, pollMs: number): DeliveryQueue => {
    const queue = openMongoDeliveryQueue({ connection, clock, pollMs });
    onTestFinished(() => queue.close());
    return queue;
  };

  test('finds between two polls whatever it has made due itself, however late the first one before was', async () => {
    const connection = mongodb();
    const clock = new FakeClock();
    const queue = openOn(connection, clock, 60_000);
    queue.changed.add({ notify: () => undefined });
    const nowMs = clock.now();
    const late = newDelivery(9, { createdAtMs: nowMs + 900_000 });
    await queue.enqueue([late]);
    const rises = async () => expect(await queue.nextDueAtMs()).toBe(nowMs + 900_000);
    await rises();
    const [claimed] = await queue.enqueue([one], claimOptions(nowMs, { leaseMs: 5_000 }));
    expect(await queue.nextDueAtMs()).toBe(nowMs + 5_000);
    await queue.report([retryAt(claimed as ClaimedDelivery, nowMs, nowMs + 3_000)]);
    expect(await queue.nextDueAtMs()).toBe(nowMs + 3_000);
    const [again] = await queue.claim(claimOptions(nowMs + 3_000, { leaseMs: 1_000 }));
    expect(await queue.nextDueAtMs()).toBe(nowMs + 4_000);
    await queue.report([held(again as ClaimedDelivery)]);
    await rises();
    await queue.resume(7, nowMs + 2_000);
    expect(await queue.nextDueAtMs()).toBe(nowMs + 2_000);
    const [resumed] = await queue.claim(claimOptions(nowMs + 2_000));
    await queue.report([failed(resumed as ClaimedDelivery, nowMs)]);
    await rises();
    await queue.redeliver(one.id, { force: false, dueAtMs: nowMs + 1_000 });
    expect(await queue.nextDueAtMs()).toBe(nowMs + 1_000);
    const [given] = await queue.claim(claimOptions(nowMs + 1_000));
    await queue.report([{ kind: 'released', ...claimOf(given as ClaimedDelivery) }]);
    expect(await queue.nextDueAtMs()).toBe(nowMs);
    await queue.enqueue([newDelivery(2, { createdAtMs: nowMs - 80_000 })]);
    expect(await queue.nextDueAtMs()).toBe(nowMs - 80_000);
    expect(await queue.claim(claimOptions(nowMs))).toHaveLength(2);
  });

  test('finds by its next poll what another process has made due before all that it knows of', async () => {
    const connection = mongodb();
    const clock = new FakeClock();
    const [queue, other] = [openOn(connection, clock, 20), openOn(connection, clock, 20)];
    await queue.enqueue([newDelivery(9, { createdAtMs: clock.now() + 900_000 })]);
    const heard = Promise.withResolvers<void>();
    queue.changed.add({ notify: heard.resolve });
    expect(await queue.nextDueAtMs()).toBe(clock.now() + 900_000);
    await other.enqueue([newDelivery(1, { createdAtMs: clock.now() - 900_000 })]);
    await within(heard.promise, 5_000, 'it was not found');
    expect(await queue.nextDueAtMs()).toBe(clock.now() - 900_000);
    expect(await queue.claim(claimOptions(clock.now()))).toHaveLength(1);
  });
});
