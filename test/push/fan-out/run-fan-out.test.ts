import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { FuelError } from '../../../src/base/errors.ts';
import { SqliteSubscriptions } from '../../../src/engines/sqlite/event-store/subscriptions.ts';
import type { GroupEvent, PersistentSubscriptions } from '../../../src/event-store/event-store.ts';
import type { FanOut } from '../../../src/push/fan-out/fan-out.ts';
import { DELIVERIES_GROUP, runFanOut } from '../../../src/push/fan-out/run-fan-out.ts';
import { settle } from '../../support/deliveries/fake-alarm-clock.ts';
import { countByState } from '../../support/deliveries/listed.ts';
import type { PushMachine } from '../../support/deliveries/push.ts';
import { id, pushMachine, unavailable } from '../../support/deliveries/push-machine.ts';
import { interposed } from '../../support/interposed.ts';
import { memoryLog } from '../../support/service/api.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const SECOND_MS = 1_000;

/** A group on the machine's log; `run` fans out until the test is over or `end` is called. */
async function start() {
  const m = await pushMachine();
  const path = join(temporaryFolder(), 'subscriptions.db');
  const subscriptions = new SqliteSubscriptions({
    path,
    store: m.store,
    clock: m.clock,
    pollMs: 5,
  });
  onTestFinished(() => subscriptions.close());
  const lines: Record<string, unknown>[] = [];
  const run = ({
    fanOut = m.fanOut,
    group = subscriptions,
  }: {
    fanOut?: Pick<FanOut, 'handle'>;
    group?: PersistentSubscriptions;
  } = {}) => {
    const stop = new AbortController();
    const ended = runFanOut({
      subscriptions: group,
      fanOut: fanOut as FanOut,
      log: memoryLog(lines),
      signal: stop.signal,
    });
    const end = async () => {
      stop.abort();
      await ended;
    };
    onTestFinished(() => end().catch(() => undefined));
    return { ended, end };
  };
  /** Lists the streams of the events that the group still has to hand out. */
  const left = async (): Promise<string[]> => {
    const stop = new AbortController();
    const streams: string[] = [];
    const consumer = subscriptions.consume(DELIVERIES_GROUP, { bufferSize: 10, signal: stop.signal });
    setTimeout(() => stop.abort(), 60);
    for await (const { event } of consumer) streams.push(event.stream);
    return streams;
  };
  const find = (transactionId: number) => m.queue.find(id(transactionId));
  return { m, subscriptions, run, left, lines, find };
}

const until = async (condition: () => unknown) => {
  while (!(await condition())) await settle();
};

/** Takes the next event of the group, as a consumer that then ends. */
async function takeOne(
  subscriptions: SqliteSubscriptions,
  act: (consumer: ReturnType<typeof subscriptions.consume>, event: GroupEvent) => Promise<void>,
): Promise<void> {
  const stop = new AbortController();
  const consumer = subscriptions.consume(DELIVERIES_GROUP, { bufferSize: 1, signal: stop.signal });
  for await (const event of consumer) {
    await act(consumer, event);
    stop.abort();
  }
}

/** Hands everything on to the machine's own fan-out, after `before`. */
function fanningOut(m: PushMachine, before: (events: readonly GroupEvent[]) => Promise<void> | void) {
  return {
    async handle(events: readonly GroupEvent[]) {
      await before(events);
      return m.fanOut.handle(events);
    },
  };
}

test('it reads from the start of the log, continues live, and after a restart where it ended', async () => {
  const { m, run, find } = await start();
  await m.confirm(501);
  const first = run();
  await until(() => find(501));
  await m.confirm(502);
  await until(() => find(502));
  await first.end();
  await m.confirm(503);
  const handled: string[] = [];
  run({ fanOut: fanningOut(m, (events) => void handled.push(...events.map(({ event }) => event.stream))) });
  await until(() => find(503));
  expect(handled).toEqual(['transaction-503']);
});

test.each<[string, Error, string]>([
  [
    'that a store refuses',
    new FuelError('ITEM_REFUSED', 'the document is too large'),
    'the document is too large',
  ],
  ['at which the program fails', new TypeError('no such member'), 'TypeError: no such member'],
])('an event %s is parked with the reason, and the others are delivered', async (_, error, reason) => {
  const { m, subscriptions, run, find } = await start();
  const failing = fanningOut(m, (events) => {
    if (events.some(({ event }) => event.stream === 'transaction-2')) throw error;
  });
  for (let transaction = 1; transaction <= 3; transaction++) await m.confirm(transaction);
  run({ fanOut: failing });
  const parked = () => subscriptions.parked(DELIVERIES_GROUP);
  await until(async () => (await parked()).length > 0 && (await find(1)) && (await find(3)));
  expect(await parked()).toMatchObject([{ event: { stream: 'transaction-2' }, reason }]);
});

test('what was parked before is retried at the start: this version may be able to read it', async () => {
  const { m, subscriptions, run, find } = await start();
  const first = run();
  await m.confirm(501);
  await until(() => find(501));
  await first.end();
  await m.confirm(502);
  await takeOne(subscriptions, (consumer, event) => consumer.park(event, 'unknown schema version'));
  expect(await subscriptions.parked(DELIVERIES_GROUP)).toHaveLength(1);
  const second = run();
  await until(() => find(502));
  await second.end();
  expect(await subscriptions.parked(DELIVERIES_GROUP)).toEqual([]);
});

test('an event is acknowledged once what it calls for is stored', async () => {
  const { m, run, left, find } = await start();
  const stored: boolean[] = [];
  const failing = fanningOut(m, async () => {
    stored.push((await find(501)) !== undefined);
    if (stored.length === 1) throw unavailable();
  });
  await m.confirm(501);
  const first = run({ fanOut: failing });
  await until(() => find(501));
  await first.end();
  expect(stored).toEqual([false, false]);
  await m.clock.advance(10 * SECOND_MS); // longer than a consumer that died keeps an event
  expect(await left()).toEqual([]);
});

test('while a store is unavailable it takes no other event, and ends with its signal', async () => {
  const { m, run, left } = await start();
  const tries: string[][] = [];
  const failing = fanningOut(m, (events) => {
    tries.push(events.map(({ event }) => event.stream));
    throw unavailable();
  });
  await m.confirm(501);
  const running = run({ fanOut: failing });
  await until(() => tries.length === 1);
  await m.confirm(502);
  await until(() => tries.length === 3);
  await running.end();
  expect(tries).toEqual(tries.map(() => ['transaction-501']));
  await m.clock.advance(10 * SECOND_MS);
  expect((await left()).sort()).toEqual(['transaction-501', 'transaction-502']);
});

test('a delivery log that is closed ends it with the error', async () => {
  const { m, run } = await start();
  let tries = 0;
  const closed = fanningOut(m, () => {
    tries += 1;
    throw new FuelError('STORE_CLOSED', 'the delivery log is closed');
  });
  await m.confirm(501);
  await expect(run({ fanOut: closed }).ended).rejects.toMatchObject({ code: 'STORE_CLOSED' });
  expect(tries).toBe(1);
});

test('events of accounts are not handed out, and a batch has at most a hundred', async () => {
  const { m, run } = await start();
  const batches: string[][] = [];
  for (let transaction = 1; transaction <= 230; transaction++) await m.confirm(transaction);
  run({ fanOut: fanningOut(m, (events) => void batches.push(events.map(({ event }) => event.stream))) });
  await until(
    async () => (await countByState(m.queue)).pending + (await countByState(m.queue)).delivered >= 230,
  );
  expect(batches.flat().filter((stream) => !stream.startsWith('transaction-'))).toEqual([]);
  expect(new Set(batches.flat()).size).toBe(230);
  expect(Math.max(...batches.map(({ length }) => length))).toBe(100);
});

test('after a batch of many events the next one begins ten milliseconds after it, and takes what came', async () => {
  const { m, run, find } = await start();
  const began: { readonly atMs: number; readonly events: number }[] = [];
  const fanOut = fanningOut(m, (events) => {
    began.push({ atMs: performance.now(), events: events.length });
    if (began.length === 1) void m.confirm(900);
  });
  for (let transaction = 1; transaction <= 30; transaction++) await m.confirm(transaction);
  run({ fanOut });
  await until(() => find(900));
  expect(began.map(({ events }) => events)).toEqual([30, 1]);
  // Counted from shortly before the first is handed over, by a timer that may be a millisecond early.
  expect((began[1]?.atMs ?? 0) - (began[0]?.atMs ?? 0)).toBeGreaterThanOrEqual(5);
});

test('the subscription is reported once it is connected', async () => {
  const { m, subscriptions } = await start();
  const stop = new AbortController();
  const connected = Promise.withResolvers<void>();
  const told: (string | undefined)[] = [];
  const ended = runFanOut({
    subscriptions,
    fanOut: m.fanOut,
    log: memoryLog([]),
    signal: stop.signal,
    onState: (missing) => {
      told.push(missing);
      if (missing === undefined) connected.resolve();
    },
  });
  await connected.promise;
  stop.abort();
  await ended;
  expect(told).toEqual(['the group of the deliveries is being made ready', undefined]);
  let toldLate = false;
  await runFanOut({
    subscriptions,
    fanOut: m.fanOut,
    log: memoryLog([]),
    signal: stop.signal,
    onState: () => {
      toldLate = true;
    },
  });
  expect(toldLate).toBe(false);
});

test.each(['ensureGroup', 'replayParked', 'ack', 'retry', 'park'])(
  'where the first %s fails because the engine is unavailable, it is repeated and nothing is lost',
  async (method) => {
    const { m, subscriptions, run, lines, find } = await start();
    const failed: string[] = [];
    const before = (name: string): void => {
      if (name !== method || failed.length > 0) return;
      failed.push(name);
      throw unavailable();
    };
    const group = interposed(subscriptions, ['ensureGroup', 'replayParked'], before);
    const consume: PersistentSubscriptions['consume'] = (...given) =>
      interposed(subscriptions.consume(...given), ['ack', 'retry', 'park'], before);
    await m.record('account-9', { type: 'IntegrationEnabled', data: { account_id: 9 } });
    await m.confirm(501);
    await m.confirm(502, { account_id: 9 }); // can't be read: waits
    await m.record('transaction-503', { type: 'TransactionConfirmed', data: {} } as never); // is parked
    const running = run({ group: Object.assign(Object.create(group), { consume }) });
    await until(async () => (await subscriptions.parked(DELIVERIES_GROUP).catch(() => [])).length === 1);
    await until(() => lines.some(({ msg }) => String(msg).startsWith('deliveries wait')));
    await until(() => find(501));
    await until(() => lines.some(({ msg }) => String(msg).includes('continues: the store is available')));
    await running.end();
    expect(failed).toEqual([method]);
    const waits = lines.filter(({ msg }) => String(msg).includes('waits: a store is unavailable'));
    expect(waits).toHaveLength(1);
    await m.clock.advance(SECOND_MS);
    const again = run();
    await until(async () => (await subscriptions.status(DELIVERIES_GROUP))?.parked === 1);
    await again.end();
  },
);
