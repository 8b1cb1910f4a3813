import { expect, onTestFinished, test } from 'vitest';
import type { MongoConnection } from '../../../../src/engines/mongodb/driver/connection.ts';
import { openMongoDeliveryQueue } from '../../../../src/engines/mongodb/queue/queue.ts';
import type { ClaimedDelivery } from '../../../../src/push/queue/delivery.ts';
import {
  claimOptions,
  delivered,
  failed,
  held,
  newDelivery,
} from '../../../support/deliveries/deliveries.ts';
import { countByState, listed } from '../../../support/deliveries/listed.ts';
import { beforeWrites } from '../../../support/engines/interposed-mongodb.ts';
import { describeWithMongodb, mongodb } from '../../../support/engines/mongodb.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { Steps } from '../../../support/interposed.ts';

const LANES = ['aaaaaaaaaa', 'bbbbbbbbbb', 'cccccccccc', 'dddddddddd', 'eeeeeeeeee'] as const;
const AT = 3_000;

function openOn(
  connection: MongoConnection,
  before: (write: string) => void | Promise<void> = () => undefined,
) {
  const queue = openMongoDeliveryQueue({
    connection: beforeWrites(connection, before),
    clock: new FakeClock(),
    pollMs: 60_000,
  });
  onTestFinished(() => queue.close());
  return queue;
}

let shared: MongoConnection | undefined; // making the indexes of a fresh one takes longer than a test

/**
 * One delivery of transaction 1 in each state but withdrawn, each in a lane, one of transaction 2 that failed in the lane
 * of the held one, and the withdrawal of transaction 8.
 */
async function filled() {
  shared ??= mongodb();
  const connection = shared;
  const names = ['deliveries', 'withdrawals', 'lanes', 'delivery_log'];
  await connection.use((db) => Promise.all(names.map((name) => db.collection(name).deleteMany({}))));
  const queue = openOn(connection);
  const owed = LANES.map((prefix) => newDelivery(1, { prefix }));
  const claims = await queue.enqueue([...owed, newDelivery(2, { prefix: LANES[3] })], claimOptions(1_000));
  const [a, b, c, d, e, other] = claims as readonly ClaimedDelivery[] as [
    ClaimedDelivery,
    ClaimedDelivery,
    ClaimedDelivery,
    ClaimedDelivery,
    ClaimedDelivery,
    ClaimedDelivery,
  ];
  await queue.report([delivered(b, 1_000), failed(c, 1_000), held(d), failed(other, 1_000)]);
  await queue.withdraw([8], 1_000);
  const [owedIds, otherId] = [owed.map(({ id }) => id), other.id];
  const content = async () => ({
    deliveries: await Promise.all([...owedIds, otherId].map((id) => queue.find(id))),
    added: await Promise.all([8, 9].map((n) => queue.find(newDelivery(n).id))),
    streaks: await Promise.all(LANES.map((prefix) => queue.health(prefix))),
    counts: await countByState(queue),
    log: await queue.logId(),
  });
  return { connection, queue, claimed: { a, d, e }, owed, other, content };
}

type Filled = Awaited<ReturnType<typeof filled>>;
type Operation = (queue: ReturnType<typeof openOn>, there: Filled) => Promise<unknown>;

/** Each can be given again, with the same result. */
const OPERATIONS: Readonly<Record<string, Operation>> = {
  withdraw: (queue) => queue.withdraw([1], AT),
  erase: (queue) => queue.erase(1, AT),
  resume: (queue) => queue.resume(7, AT),
  endLane: (queue) => queue.endLane(LANES[0], 'off', AT),
  redeliver: (queue, { other }) => queue.redeliver(other.id, { force: false, dueAtMs: AT }),
  'report failures': (queue, { claimed: { a, e } }) => queue.report([failed(a, AT), failed(e, AT)]),
  'report successes': (queue, { claimed: { a, e } }) => queue.report([delivered(a, AT), delivered(e, AT)]),
  enqueue: (queue) => queue.enqueue([newDelivery(8), newDelivery(9)], claimOptions(AT)),
  purge: (queue) => queue.purge(10_000, 10),
  resetHealth: (queue) => queue.resetHealth('cccccccccc', AT),
};

describeWithMongodb('an operation of the delivery queue on MongoDB that is interrupted', () => {
  test.each(Object.entries(OPERATIONS))(
    'before any write of %s fails, and the same call completes it',
    async (_, operation) => {
      const whole = await filled();
      const all = new Steps();
      await operation(openOn(whole.connection, all.before), whole);
      expect(all.done.length).toBeGreaterThan(0);
      const { log: _log, ...expected } = await whole.content();
      const prepared = all.done.filter((write) => !write.startsWith('schema') && !write.endsWith('Indexes'));
      for (let most = all.done.length - prepared.length; most < all.done.length; most++) {
        const there = await filled();
        const { log, ...before } = await there.content();
        const steps = new Steps(most);
        await expect(operation(openOn(there.connection, steps.before), there)).rejects.toThrow(
          'ended before',
        );
        expect(steps.done).toEqual(all.done.slice(0, most));
        await operation(openOn(there.connection), there);
        const after = await there.content();
        expect(after).toEqual({ ...expected, log });
        expect(after).not.toEqual({ ...before, log });
      }
    },
  );

  test.each(['withdraw', 'erase'] as const)(
    'by a delivery that comes and one that ends, at any write of %s, leaves none open and no words',
    async (name) => {
      const all = new Steps();
      const first = await filled();
      await OPERATIONS[name]?.(openOn(first.connection, all.before), first);
      for (const at of all.done.keys()) {
        const { connection, queue, claimed } = await filled();
        const late = newDelivery(1, { prefix: 'ffffffffff' });
        let count = 0;
        const racing = openOn(connection, async () => {
          if (count++ === at) {
            await queue.enqueue([late], claimOptions(AT));
            await queue.report([delivered(claimed.a, AT)]); // with words of its receiver
          }
          for (const { id } of await listed(queue, { state: 'pending' }))
            expect((await queue.find(id))?.record.head).not.toBe('');
        });
        await (name === 'erase' ? racing.erase(1, AT) : racing.withdraw([1], AT));
        const found = await queue.find(late.id);
        expect([at, found?.state]).toEqual([at, 'withdrawn']);
        const words = (await queue.find(claimed.a.id))?.attempts.map(
          ({ outcome }) => outcome.answer?.headers,
        );
        if (name === 'erase') expect([at, found?.record.head, words]).toEqual([at, '', [{}]]);
        expect(await countByState(queue, { transactionId: 1 })).toMatchObject({ pending: 0, held: 0 });
      }
    },
  );
});
