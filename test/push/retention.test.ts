import { expect, onTestFinished, test, vi } from 'vitest';
import { silentLog } from '../../src/base/log.ts';
import { deliveryId } from '../../src/push/message/envelope.ts';
import { purgeEnded, startRetention } from '../../src/push/retention.ts';
import { PREFIX } from '../support/accounts/account-samples.ts';
import {
  answered,
  claimFrom,
  claimOptions,
  delivered,
  newDelivery,
  SUCCESS,
} from '../support/deliveries/deliveries.ts';
import { settle } from '../support/deliveries/fake-alarm-clock.ts';
import { countByState } from '../support/deliveries/listed.ts';
import { PushMachine, READY } from '../support/deliveries/push.ts';
import { openPushStores } from '../support/deliveries/push-stores.ts';
import { record } from '../support/event-store/store-events.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

test('what ended longer ago than the retention is removed, in batches, and what is pending never', async () => {
  const m = new PushMachine(temporaryFolder());
  onTestFinished(() => m.close());
  await m.account(...READY);
  m.start();
  await settle();
  const old = Array.from({ length: 130 }, (_, index) => index + 1);
  m.sender.answer = ({ id }) => ({
    outcome: id === deliveryId(PREFIX, 500) ? answered(503) : SUCCESS,
    afterMs: 5,
  });
  await m.fan(...(await Promise.all(old.map((id) => m.confirm(id)))), await m.confirm(500));
  await m.clock.advance(1_000);
  m.kill(); // so that 500 stays pending
  await m.clock.jump(10 * DAY_MS);
  m.sender.answer = () => ({ outcome: SUCCESS, afterMs: 5 });
  const purge = (retentionMs: number) =>
    purgeEnded({
      queue: m.queue,
      nowMs: m.clock.now(),
      retentionMs,
      signal: new AbortController().signal,
    });
  expect(await purge(11 * DAY_MS)).toBe(0);
  expect(await purge(9 * DAY_MS)).toBe(130);
  expect(await countByState(m.queue)).toMatchObject({ pending: 1, delivered: 0 });
});

test('what ended exactly the retention ago is kept, what ended a millisecond earlier is not', async () => {
  const { clock, openQueue } = openPushStores();
  const queue = openQueue();
  const endMs = clock.now();
  for (const [n, afterMs] of [0, -1].entries()) {
    await queue.enqueue([newDelivery(n)]);
    const startedAtMs = endMs + afterMs - 250; // an attempt takes that long
    await queue.report(
      (await claimFrom(queue, claimOptions(endMs))).map((claim) => delivered(claim, startedAtMs)),
    );
  }
  clock.advance(DAY_MS);
  const { signal } = new AbortController();
  expect(await purgeEnded({ queue, nowMs: clock.now(), retentionMs: DAY_MS, signal })).toBe(1);
  expect(await queue.find(newDelivery(0).id)).toBeDefined();
});

test('a withdrawal is forgotten a day after nothing from before it is enqueued any more', async () => {
  const { clock, openQueue } = openPushStores();
  const queue = openQueue();
  const { signal } = new AbortController();
  const purge = () => purgeEnded({ queue, nowMs: clock.now(), retentionMs: 9 * DAY_MS, signal });
  const stateAfter = async (ms: number, n: number) => {
    await queue.change({ kind: 'withdraw', transactionIds: [n] }, clock.now());
    clock.advance(ms);
    await purge();
    await queue.enqueue([newDelivery(n)]);
    return (await queue.find(newDelivery(n).id))?.state;
  };
  expect(await stateAfter(10 * DAY_MS, 1)).toBe('withdrawn');
  expect(await stateAfter(10 * DAY_MS + 1, 2)).toBe('pending');
});

test('a clock that is far ahead at the hour of the removal removes nothing, also if events are recorded meanwhile', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
  const stopping = new AbortController();
  onTestFinished(() => {
    stopping.abort();
    vi.useRealTimers();
  });
  const { clock, store, openQueue } = openPushStores();
  const queue = openQueue();
  await record(store, 'account-1', 'newest');
  await queue.enqueue([newDelivery(1)]);
  const claims = await claimFrom(queue, claimOptions(clock.now()));
  await queue.report(claims.map((claim) => delivered(claim, clock.now())));
  clock.advance(100 * DAY_MS);
  const removals: string[] = [];
  const change: typeof queue.change = async (wanted, nowMs) => {
    const done = await queue.change(wanted, nowMs);
    removals.push(`${wanted.kind}: ${done}`);
    return done;
  };
  startRetention({
    store,
    clock,
    queue: { change },
    retentionMs: 90 * DAY_MS,
    log: silentLog,
    signal: stopping.signal,
  });
  await vi.advanceTimersByTimeAsync(HOUR_MS);
  await record(store, 'account-1', 'at that time');
  await vi.advanceTimersByTimeAsync(HOUR_MS);
  expect(removals).toEqual(['purge: 0', 'purge: 0']);
});

test('a service that stops removes no further batch', async () => {
  const stopping = new AbortController();
  let batches = 0;
  const queue = {
    change: async () => {
      batches += 1;
      if (batches === 3) stopping.abort();
      return 100;
    },
  };
  const removed = await purgeEnded({
    queue,
    nowMs: 0,
    retentionMs: DAY_MS,
    signal: stopping.signal,
  });
  expect([batches, removed]).toEqual([3, 300]);
});

test('between two batches the store is left to others for a moment', async () => {
  const begun: number[] = [];
  const queue = {
    change: async () => {
      begun.push(performance.now());
      return begun.length < 3 ? 100 : 0;
    },
  };
  const { signal } = new AbortController();
  await purgeEnded({ queue, nowMs: 0, retentionMs: DAY_MS, signal });
  const [first = 0, , last = 0] = begun;
  expect(last - first).toBeGreaterThan(35);
});
