import { expect, onTestFinished, test } from 'vitest';
import type { Coordination } from '../../src/base/coordination/coordination.ts';
import type { AccountEvent } from '../../src/domain/account-events.ts';
import { newEvent } from '../../src/event-store/new-event.ts';
import { ENDS, type EndsOptions, followEnds } from '../../src/push/ends.ts';
import type { DeliveryQueue } from '../../src/push/queue/delivery-queue.ts';
import { keyIssued, onKey, opened, PREFIX, webhookSet } from '../support/accounts/account-samples.ts';
import { KeptRows } from '../support/accounts/kept-rows.ts';
import { claimFrom, claimOptions, newDelivery } from '../support/deliveries/deliveries.ts';
import { listed } from '../support/deliveries/listed.ts';
import { queueInMemory } from '../support/deliveries/open-queue.ts';
import { unavailable } from '../support/deliveries/push-machine.ts';
import { memoryCoordination } from '../support/engines/coordination.ts';
import { MemoryLog, openMemoryEventStore } from '../support/engines/memory-log.ts';
import { MemoryStores } from '../support/engines/memory-stores.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { replacing } from '../support/interposed.ts';
import { memoryLog } from '../support/service/api.ts';
import { until } from '../support/waiting.ts';

const AUTHOR = { actor: 'test', command: 'test' };
const REMOVED = 'the webhook was removed';

async function machine() {
  const clock = new FakeClock();
  const store = openMemoryEventStore(new MemoryLog(), clock);
  const coordination = memoryCoordination(clock);
  const queue = queueInMemory(new MemoryStores(), clock);
  const rows = new KeptRows(store, clock);
  const lines: Record<string, unknown>[] = [];
  onTestFinished(async () => {
    await queue.close();
    await coordination.close();
    await store.close();
  });
  /** Records events, and returns the position of the last one. */
  const record = async (...events: readonly AccountEvent[]): Promise<number> => {
    const appended = events.map((event) => newEvent(event, AUTHOR, clock.now()));
    const [result] = await store.append([{ stream: 'account-7', expected: 'any', events: appended }]);
    return result?.kind === 'appended' ? result.position : 0;
  };
  /** Follows until everything is done, and the checkpoint says so. */
  const follow = async (through: Partial<EndsOptions> = {}): Promise<void> => {
    const stopping = new AbortController();
    const own = { store, queue, coordination, rows: rows.tables, clock, log: memoryLog(lines) };
    const terms = { environment: 'staging', holder: 'one', signal: stopping.signal } as const;
    const ended = followEnds({ ...own, ...terms, ...through });
    const head = await store.head();
    const { checkpoint } = through.coordination ?? coordination;
    const isDone = async () => ((await checkpoint(ENDS))?.position ?? 0) >= head;
    await Promise.race([until(isDone), ended]);
    stopping.abort();
    await ended;
  };
  const states = async () => (await listed(queue)).map(({ state, reason }) => [state, reason]);
  await record(opened(), keyIssued(), webhookSet());
  return { clock, store, coordination, queue, rows, lines, record, follow, states };
}

type Machine = Awaited<ReturnType<typeof machine>>;

/** Stores a delivery of the next event, which makes it as old as the log is now. */
async function enqueue({ queue, store }: Pick<Machine, 'queue' | 'store'>, n: number): Promise<void> {
  await queue.enqueue([{ ...newDelivery(n), prefix: PREFIX, position: await store.head() }]);
}

const OFF: AccountEvent = { type: 'KeySwitchedOff', data: { account_id: 7, prefix: PREFIX } };

test.each([
  ['a key that is switched off', OFF, 'the key was switched off'],
  ['a webhook that is removed', onKey('WebhookRemoved'), REMOVED],
  [
    'a webhook that is disabled',
    onKey('WebhookDisabled'),
    expect.stringMatching(/^the webhook was disabled/),
  ],
] as const)('%s ends its pending deliveries, and none of later events', async (_, event, reason) => {
  const m = await machine();
  await enqueue(m, 1);
  await m.record(event);
  await enqueue(m, 2);
  await m.follow();
  expect(await m.states()).toEqual([
    ['pending', null],
    ['failed', reason],
  ]);
});

test('what another follower had ended is not ended again after a redelivery', async () => {
  const m = await machine();
  await enqueue(m, 1);
  await m.record(onKey('WebhookRemoved'));
  await m.follow();
  await m.record(webhookSet({ secret: null }));
  await m.rows.follow();
  const [delivery] = await listed(m.queue);
  if (delivery === undefined) throw new Error('there is no delivery');
  await m.queue.redeliver(delivery, { force: false, dueAtMs: m.clock.now() });
  await m.follow({ coordination: memoryCoordination(m.clock) }); // the checkpoint was lost
  expect(await m.states()).toEqual([['pending', null]]);
  await m.record(onKey('WebhookRemoved'));
  await m.follow();
  expect(await m.states()).toEqual([['failed', REMOVED]]);
});

test('a webhook that was on again before the end is applied keeps what was redelivered since', async () => {
  const m = await machine();
  await enqueue(m, 1);
  const [first] = await listed(m.queue);
  if (first === undefined) throw new Error('there is no delivery');
  await m.queue.change({ kind: 'end lane', prefix: PREFIX, reason: 'before' }, m.clock.now());
  await m.record(onKey('WebhookRemoved'), webhookSet({ secret: null }));
  await enqueue(m, 2);
  await m.queue.redeliver(first, { force: false, dueAtMs: m.clock.now() });
  await m.rows.follow();
  await m.follow();
  expect(await m.states()).toEqual([
    ['pending', null],
    ['pending', null],
  ]);
});

test('a follower that ends before its checkpoint is stored does the same again, which changes nothing', async () => {
  const m = await machine();
  await enqueue(m, 1);
  await m.record(onKey('WebhookRemoved'));
  const counts: number[] = [];
  const queue: Pick<DeliveryQueue, 'change'> = {
    async change(...given) {
      counts.push(await m.queue.change(...given));
      return counts.at(-1) ?? 0;
    },
  };
  const crashing: Coordination = replacing(m.coordination, {
    moveCheckpoint: () => Promise.reject(new Error('the process ends')),
  });
  await expect(m.follow({ queue, coordination: crashing })).rejects.toThrow('the process ends');
  await m.follow({ queue });
  expect([counts, await m.states()]).toEqual([[1, 0], [['failed', REMOVED]]]);
});

test('while the log cannot be written the follower waits, and then ends what is to be ended', async () => {
  const m = await machine();
  await enqueue(m, 1);
  await m.record(onKey('WebhookRemoved'));
  let failures = 2;
  const queue: Pick<DeliveryQueue, 'change'> = {
    change: (...given) => (failures-- > 0 ? Promise.reject(unavailable()) : m.queue.change(...given)),
  };
  await m.follow({ queue });
  expect(await m.states()).toEqual([['failed', REMOVED]]);
});

test('an enabling forgets the failures from before it', async () => {
  const m = await machine();
  await enqueue(m, 1);
  const [claimed] = await claimFrom(m.queue, claimOptions(m.clock.now()));
  if (claimed === undefined) throw new Error('nothing is due');
  const outcome = { ok: false, kind: 'timeout', detail: 'late', answer: null } as const;
  const times = { startedAtMs: m.clock.now(), durationMs: 500, othersUnderWay: 0 };
  const attempt = { cycle: 1, number: 1, ...times, outcome };
  await m.queue.report([{ ...claimed, kind: 'failed', attempt, reason: 'late' }]);
  expect((await m.queue.health(PREFIX)).failedInARow).toBe(1);
  m.clock.advance(10_000);
  await m.record(onKey('WebhookEnabled'));
  await m.follow();
  expect((await m.queue.health(PREFIX)).failedInARow).toBe(0);
});

test('the checkpoint of another log is not used', async () => {
  const m = await machine();
  await enqueue(m, 1);
  await m.record(onKey('WebhookRemoved'));
  const other = { storeId: 'another', position: 1_000, anchor: undefined };
  await m.coordination.moveCheckpoint(ENDS, other);
  const stopping = new AbortController();
  const own = { ...m, rows: m.rows.tables, log: memoryLog(m.lines), holder: 'one' };
  const ended = followEnds({ ...own, environment: 'staging', signal: stopping.signal });
  await until(async () => (await m.states())[0]?.[0] === 'failed');
  stopping.abort();
  await ended;
  expect(m.lines.map(({ msg }) => msg)).toContainEqual(
    expect.stringContaining('every account event is read again'),
  );
});
