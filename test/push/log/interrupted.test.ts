import { expect, onTestFinished, test } from 'vitest';
import { openDeliveryLog } from '../../../src/push/log/open.ts';
import {
  ALL_COLUMNS,
  DELIVERIES,
  DELIVERY_STORE,
  owedOf,
  type StoredRow,
  WITHDRAWALS,
} from '../../../src/push/log/tables.ts';
import type { ClaimedDelivery } from '../../../src/push/queue/delivery.ts';
import type { DeliveryQueue } from '../../../src/push/queue/delivery-queue.ts';
import { put } from '../../../src/tables/tables.ts';
import {
  claimFrom,
  claimOptions,
  delivered,
  failed,
  newDelivery,
} from '../../support/deliveries/deliveries.ts';
import { countByState, listed } from '../../support/deliveries/listed.ts';
import { MemoryStores } from '../../support/engines/memory-stores.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { interposed, Steps } from '../../support/interposed.ts';

const PREFIXES = ['aaaaaaaaaa', 'bbbbbbbbbb', 'cccccccccc', 'dddddddddd', 'eeeeeeeeee'] as const;
const AT = 3_000;

type Before = (write: string) => void | Promise<void>;

/** The log as a process has it, with something done before each of its writes. */
function openOn(stores: MemoryStores, before: Before = () => undefined): DeliveryQueue {
  const clock = new FakeClock();
  const tables = interposed(stores.open(DELIVERY_STORE, clock), ['write'], before);
  const queue = openDeliveryLog(tables, clock);
  onTestFinished(() => queue.close());
  return queue;
}

/**
 * One delivery of transaction 1 in each state but withdrawn, each in a lane, one of transaction 2 that failed in the lane
 * of the claimed one, and the withdrawal of transaction 8.
 */
async function filled() {
  const stores = new MemoryStores();
  const queue = openOn(stores);
  const owed = PREFIXES.map((prefix) => newDelivery(1, { prefix }));
  const claims = await queue.enqueue([...owed, newDelivery(2, { prefix: PREFIXES[3] })], claimOptions(1_000));
  const [a, b, c, d, e, other] = claims as readonly ClaimedDelivery[] as [
    ClaimedDelivery,
    ClaimedDelivery,
    ClaimedDelivery,
    ClaimedDelivery,
    ClaimedDelivery,
    ClaimedDelivery,
  ];
  await queue.report([delivered(b, 1_000), failed(c, 1_000), failed(other, 1_000)]);
  await queue.change({ kind: 'withdraw', transactionIds: [8] }, 1_000);
  const { id: log } = await queue.logId();
  const content = async () => ({
    deliveries: await Promise.all([...owed, other].map(({ id }) => queue.find(id))),
    added: await Promise.all([8, 9].map((n) => queue.find(newDelivery(n).id))),
    streaks: await Promise.all(PREFIXES.map((prefix) => queue.health(prefix))),
    counts: await countByState(queue),
  });
  return { stores, queue, log, claimed: { a, d, e }, owed, other, content };
}

type Filled = Awaited<ReturnType<typeof filled>>;
type Operation = (queue: DeliveryQueue, there: Filled) => Promise<unknown>;

/** Each can be given again, with the same result. */
const OPERATIONS: Readonly<Record<string, Operation>> = {
  withdraw: (queue) => queue.change({ kind: 'withdraw', transactionIds: [1] }, AT),
  erase: (queue) => queue.change({ kind: 'erase', transactionId: 1 }, AT),
  redact: (queue) => queue.change({ kind: 'redact', transactionId: 1 }, 2_000),
  endLane: (queue) => queue.change({ kind: 'end lane', prefix: PREFIXES[0], reason: 'off' }, AT),
  redeliver: (queue, { other }) => queue.redeliver(other, { force: false, dueAtMs: AT }),
  'report failures': (queue, { claimed: { a, e } }) => queue.report([failed(a, AT), failed(e, AT)]),
  'report successes': (queue, { claimed: { a, e } }) => queue.report([delivered(a, AT), delivered(e, AT)]),
  enqueue: (queue) => queue.enqueue([newDelivery(8), newDelivery(9)], claimOptions(AT)),
  purge: (queue) => queue.change({ kind: 'purge', retentionMs: 0, limit: 10 }, 10_000),
  resetHealth: (queue) => queue.change({ kind: 'enabled', prefix: 'cccccccccc', atMs: AT }, AT),
};

test.each(Object.entries(OPERATIONS))(
  'an operation that ends before any write of %s is completed by the same call',
  async (_, operation) => {
    const whole = await filled();
    const all = new Steps();
    await operation(openOn(whole.stores, all.before), whole);
    expect(all.done.length).toBeGreaterThan(0);
    const expected = await whole.content();
    for (const most of all.done.keys()) {
      const there = await filled();
      const before = await there.content();
      const steps = new Steps(most);
      await expect(operation(openOn(there.stores, steps.before), there)).rejects.toThrow('ended before');
      expect(steps.done).toEqual(all.done.slice(0, most));
      await operation(openOn(there.stores), there);
      const after = await there.content();
      expect(after).toEqual(expected);
      expect(after).not.toEqual(before);
    }
  },
);

test.each(['withdraw', 'erase'] as const)(
  'a delivery that comes and one that ends at any write of %s leave none open and no words',
  async (name) => {
    const all = new Steps();
    const first = await filled();
    await OPERATIONS[name]?.(openOn(first.stores, all.before), first);
    for (const at of all.done.keys()) {
      const { stores, queue, claimed } = await filled();
      const late = newDelivery(1, { prefix: 'ffffffffff' });
      let count = 0;
      const racing = openOn(stores, async () => {
        if (count++ === at) {
          await queue.enqueue([late], claimOptions(AT));
          await queue.report([delivered(claimed.a, AT)]); // with words of its receiver
        }
        for (const { id } of await listed(queue, { state: 'pending' }))
          expect((await queue.find(id))?.record).not.toBe('');
      });
      await OPERATIONS[name]?.(racing, await filled());
      const found = await queue.find(late.id);
      expect([at, found?.state]).toEqual([at, 'withdrawn']);
      const words = (await queue.find(claimed.a.id))?.attempts.map(({ outcome }) => outcome.answer?.headers);
      if (name === 'erase') expect([at, found?.record, words]).toEqual([at, '', [{}]]);
      expect(await countByState(queue, { transactionIds: [1] })).toMatchObject({ pending: 0 });
    }
  },
);

/** With something that another process does right before a write of it, the first unless said. */
function overtaken(stores: MemoryStores, work: () => Promise<unknown>, at = 0): DeliveryQueue {
  let count = 0;
  return openOn(stores, async () => void (count++ === at && (await work())));
}

test('a failure whose delivery was not recorded is counted once when it is reported, or made, again', async () => {
  const { stores, queue, claimed } = await filled();
  const dying = new Steps(1);
  await expect(openOn(stores, dying.before).report([failed(claimed.a, AT)])).rejects.toThrow('ended before');
  expect(await queue.find(claimed.a.id)).toMatchObject({ state: 'pending', attempts: [] });
  expect((await queue.health(PREFIXES[0])).failedInARow).toBe(1);
  const [again] = await claimFrom(queue, claimOptions(9_000, { limit: 1 }));
  expect(again).toMatchObject({ id: claimed.a.id, attemptNumber: 1 });
  const health = await queue.report([failed(again as ClaimedDelivery, 9_000)]);
  expect(health.get(PREFIXES[0])).toMatchObject({ failedInARow: 1 });
});

test('what a process stored and died before it looked for withdrawals is withdrawn by who claims it', async () => {
  const { stores, queue } = await filled();
  const tables = stores.open(DELIVERY_STORE, new FakeClock());
  await tables.write([put(WITHDRAWALS, { transaction_id: 3, made_at: 1 }, 'missing')]);
  const marked = newDelivery(3, { prefix: 'ffffffffff' });
  await overtaken(stores, async () => undefined).enqueue([marked]);
  expect(await queue.find(marked.id)).toMatchObject({ state: 'withdrawn', record: '' });
  await queue.enqueue([newDelivery(4, { prefix: 'ffffffffff' })]);
  await tables.write([put(WITHDRAWALS, { transaction_id: 4, made_at: 1 }, 'missing')]);
  expect(await claimFrom(queue, claimOptions(1_000))).toEqual([]);
  expect(await countByState(queue, { prefix: 'ffffffffff' })).toMatchObject({ withdrawn: 2, pending: 0 });
});

test('no delivery escapes a withdrawal that comes just before it is stored or made due again', async () => {
  const { stores, queue, other } = await filled();
  const fresh = newDelivery(5);
  const storing = overtaken(stores, () => queue.change({ kind: 'withdraw', transactionIds: [5] }, 2_000));
  expect(await storing.enqueue([fresh], claimOptions(1_000))).toEqual([]);
  const makingDue = overtaken(stores, () => queue.change({ kind: 'withdraw', transactionIds: [2] }, 2_000));
  expect(await makingDue.redeliver(other, { force: false, dueAtMs: 1_000 })).toBe('withdrawn');
  for (const { id } of [fresh, other]) expect((await queue.find(id))?.state).toBe('withdrawn');
});

test('a lease takes the rest where another process has taken some of it after it was chosen', async () => {
  const stores = new MemoryStores();
  const queue = openOn(stores);
  const batch = Array.from({ length: 5 }, (_, n) => newDelivery(n, { createdAtMs: n }));
  await queue.enqueue(batch);
  const taken: string[] = [];
  const elsewhere = async () => {
    for (const { id } of await claimFrom(queue, claimOptions(1_000, { limit: 2 }))) taken.push(id);
  };
  const ids = (of: readonly { readonly id: string }[]) => of.map(({ id }) => id);
  const left = await claimFrom(overtaken(stores, elsewhere), claimOptions(1_000, { limit: 3 }));
  expect([taken, ids(left)]).toEqual([ids(batch.slice(0, 2)), ids(batch.slice(2, 3))]);
  expect(ids(await claimFrom(queue, claimOptions(1_000)))).toEqual(ids(batch.slice(3)));
});

test('what ends between its lease and the reading of its record is not handed out', async () => {
  const { stores, queue } = await filled();
  await queue.enqueue([newDelivery(7, { prefix: 'ffffffffff' })]);
  const tables = stores.open(DELIVERY_STORE, new FakeClock());
  let isLeased = false;
  const racing = openDeliveryLog(
    interposed(tables, ['write', 'get'], async (call) => {
      if (call === 'get' && isLeased) {
        isLeased = false;
        await queue.change({ kind: 'end lane', prefix: 'ffffffffff', reason: 'off' }, 2_000);
      } else isLeased = call === 'write';
    }),
    new FakeClock(),
  );
  onTestFinished(() => racing.close());
  expect(await claimFrom(racing, claimOptions(1_000))).toEqual([]);
  expect(await countByState(queue, { prefix: 'ffffffffff' })).toMatchObject({ failed: 1, pending: 0 });
});

test('none of a batch is changed that another process has ended or made due again since it was found', async () => {
  const { stores, queue, claimed, other } = await filled();
  const resuming = overtaken(stores, () => queue.change({ kind: 'withdraw', transactionIds: [1] }, 2_000));
  expect(await resuming.change({ kind: 'end lane', prefix: PREFIXES[3], reason: 'off' }, AT)).toBe(0);
  expect((await queue.find(claimed.d.id))?.state).toBe('withdrawn');
  const [late] = await queue.enqueue([newDelivery(7, { prefix: PREFIXES[0] })], claimOptions(1_000));
  const ending = overtaken(stores, () => queue.report([delivered(late as ClaimedDelivery, 2_000)]));
  expect(await ending.change({ kind: 'end lane', prefix: PREFIXES[0], reason: 'off' }, AT)).toBe(0);
  expect(await countByState(queue, { prefix: PREFIXES[0] })).toMatchObject({ withdrawn: 1, delivered: 1 });
  await queue.redeliver(other, { force: false, dueAtMs: 9_000 });
  const making = overtaken(stores, () =>
    queue.change({ kind: 'end lane', prefix: PREFIXES[3], reason: 'off' }, AT),
  );
  expect(await making.redeliver(other, { force: false, dueAtMs: 9_000 })).toBe('pending');
});

test('two redeliveries at once make one cycle', async () => {
  const { stores, queue, other } = await filled();
  const request = { force: false, dueAtMs: 2_000 };
  const making = overtaken(stores, () => queue.redeliver(other, request));
  expect(await making.redeliver(other, { ...request, dueAtMs: 9_000 })).toBe('pending');
  expect(await queue.find(other.id)).toMatchObject({ cycle: 2, dueAtMs: 2_000 });
});

test('a failure is counted once that several processes report at once', async () => {
  const { stores, queue } = await filled();
  const owed = Array.from({ length: 10 }, (_, n) => newDelivery(n + 20, { prefix: 'ffffffffff' }));
  const claimed = await queue.enqueue(owed, claimOptions(1_000));
  const reports = claimed.map((entry) => failed(entry, 1_000));
  const others = [openOn(stores), openOn(stores)] as const;
  await Promise.all([
    queue.report(reports),
    others[0].report(reports.toReversed()),
    others[1].report(reports),
  ]);
  expect((await queue.health('ffffffffff')).failedInARow).toBe(10);
  for (const { id } of owed) expect(await queue.find(id)).toMatchObject({ attemptsInCycle: 1 });
});

test('a success ends a streak although another process has changed the streak meanwhile', async () => {
  const { stores, queue, claimed } = await filled();
  const owed = [30, 31, 32].map((n) => newDelivery(n, { prefix: PREFIXES[0] }));
  const more = await queue.enqueue(owed, claimOptions(1_000));
  await queue.report([failed(more[0] as ClaimedDelivery, 1_000)]);
  const ending = overtaken(stores, () => queue.report([failed(more[1] as ClaimedDelivery, 1_000)]));
  const health = await ending.report([delivered(claimed.a, 2_000)]);
  expect(health.get(PREFIXES[0])?.failedInARow).toBe(0);
  expect((await queue.health(PREFIXES[0])).failedInARow).toBe(0);
});

test('a log has one name, however many ask first', async () => {
  const stores = new MemoryStores();
  const names = await Promise.all([1, 2, 3].map(() => openOn(stores).logId()));
  expect(new Set(names.map(({ id }) => id)).size).toBe(1);
});

test('a delivery whose record has the form of an earlier build is not claimed to be ended', async () => {
  const stores = new MemoryStores();
  const queue = openOn(stores);
  const clock = new FakeClock();
  await queue.enqueue([newDelivery(1)]);
  const tables = stores.open(DELIVERY_STORE, clock);
  const [row] = await tables.get(DELIVERIES, [owedOf(newDelivery(1))], ALL_COLUMNS);
  await tables.write([put(DELIVERIES, { ...(row as StoredRow), record: '{"head":"{}","fees":"{}"}' })]);
  await expect(claimFrom(queue, claimOptions(AT))).rejects.toThrow(/does not read/);
  expect((await listed(queue)).map(({ state }) => state)).toEqual(['pending']);
});
