import { type ServiceError, status } from '@grpc/grpc-js';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import type { GroupEvent } from '../../../../src/event-store/event-store.ts';
import {
  persistentSubscriptionsContract,
  type SubscriptionsUnderTest,
} from '../../../contracts/persistent-subscriptions.contract.ts';
import { persistentSubscriptionsBufferContract } from '../../../contracts/persistent-subscriptions-buffer.contract.ts';
import { fault, groupFault, notLeader } from '../../../support/event-store/eventstoredb-double/answers.ts';
import { openClient } from '../../../support/event-store/eventstoredb-double/engines-under-test.ts';
import {
  groupsAt,
  groupsOnDouble,
  restartableNode,
} from '../../../support/event-store/eventstoredb-under-test.ts';
import { nameOf, record } from '../../../support/event-store/store-events.ts';
import { within } from '../../../support/waiting.ts';

const realUrl = inject('eventstoreUrl');
const SENDS_ALL = 'sends all acknowledgements of a consumer that ends right after them';

/** Ends consumers right after they acknowledged, in a process that is too busy to send it at once. */
async function acknowledgeAndEnd({ store, subscriptions }: SubscriptionsUnderTest): Promise<void> {
  const group = `ending-${crypto.randomUUID()}`;
  await subscriptions.ensureGroup(group, { prefixes: ['transaction-'], ackTimeoutMs: 60_000 });
  for (let round = 0; round < 5; round++) {
    const names = Array.from({ length: 300 }, (_, index) => `e${round}-${index}`);
    await record(store, `transaction-${round}`, ...names);
    const end = new AbortController();
    const handed: GroupEvent[] = [];
    const consumer = subscriptions.consume(group, { bufferSize: 400, signal: end.signal });
    for await (const event of consumer) {
      handed.push(event);
      if (handed.length < names.length) continue;
      void consumer.ack(handed);
      for (const startMs = performance.now(); performance.now() < startMs + 150; );
      break;
    }
    end.abort();
    expect(handed.map(({ event }) => nameOf(event)).toSorted()).toEqual(names.toSorted());
  }
}

describe('on the double', () => {
  persistentSubscriptionsContract(groupsOnDouble);
  persistentSubscriptionsBufferContract(groupsOnDouble);
  test(SENDS_ALL, async () => acknowledgeAndEnd(await groupsOnDouble()));
});

describe.runIf(realUrl !== undefined)('on a real EventStoreDB', () => {
  persistentSubscriptionsContract(() => groupsAt(realUrl ?? ''));
  persistentSubscriptionsBufferContract(() => groupsAt(realUrl ?? ''));
  test(SENDS_ALL, async () => acknowledgeAndEnd(await groupsAt(realUrl ?? '')));
});

describe('a group on EventStoreDB', () => {
  const SETTINGS = { prefixes: ['transaction-'], ackTimeoutMs: 1_000 };

  async function opened() {
    const { double, store, restart, signal } = await restartableNode();
    const end = new AbortController();
    signal.addEventListener('abort', () => end.abort());
    const subscriptions = store.subscriptions();
    await subscriptions.ensureGroup('g', SETTINGS);
    const told: (string | undefined)[] = [];
    const onState = (missing: string | undefined): void => void told.push(missing);
    const consumer = subscriptions.consume('g', { bufferSize: 2, signal: end.signal, onState });
    const events = consumer[Symbol.asyncIterator]();
    const next = async (): Promise<GroupEvent> => (await events.next()).value;
    return { double, store, subscriptions, consumer, told, next, restart, end };
  }

  test('continues automatically after its node was killed and restarted, and says so', async () => {
    const { store, consumer, told, next, restart } = await opened();
    await record(store, 'transaction-1', 'a');
    await consumer.ack([await next()]);
    const coming = next();
    await restart();
    await record(store, 'transaction-2', 'b');
    let event = await coming;
    while (nameOf(event.event) === 'a') event = await next(); // its acknowledgement may be lost
    expect(nameOf(event.event)).toBe('b');
    expect([told[0], told.at(-1)]).toEqual([undefined, undefined]);
    expect(told.filter((missing) => missing !== undefined).length).toBeGreaterThan(0);
  });

  const LATE = fault(status.DEADLINE_EXCEEDED, 'Operation timed out');
  const CUT = fault(status.INTERNAL, 'Received RST_STREAM with code 2 (Internal server error)');
  const cases: [string, (port: number) => ServiceError][] = [
    ['is not the leader', notLeader],
    ['does not answer in time', () => LATE],
    ['is not ready', () => fault(status.UNAVAILABLE, 'Server Is Not Ready')],
    ['drops its consumers', () => groupFault('persistent-subscription-dropped', 'g')],
  ];
  test.each(cases)('is joined again within two seconds of a node that %s', async (_, refusal) => {
    const { double, store, next } = await opened();
    const error = refusal(double.port);
    double.refuse('join', error, error, error);
    double.refuse('info', error, error);
    await record(store, 'transaction-1', 'a');
    expect(nameOf((await within(next(), 2_000, 'it was not joined')).event)).toBe('a');
  });

  test('is used after a node broke while it was asked what it supports', async () => {
    const { double, store } = await restartableNode();
    double.refuse('features', CUT);
    const subscriptions = store.subscriptions();
    await subscriptions.ensureGroup('g', SETTINGS);
    expect(await subscriptions.status('g')).toMatchObject({ parked: 0 });
  });

  test('fails its reader with a fault of the program, without a retry', async () => {
    const { double, next } = await opened();
    double.refuse('join', fault(status.PERMISSION_DENIED, 'Access Denied'));
    await expect(next()).rejects.toThrow('Access Denied');
  });

  test('delays an event for longer than its time-out, hands it out once, and hands out the others meanwhile', async () => {
    const { store, consumer, next } = await opened();
    await record(store, 'transaction-1', 'late');
    const startMs = performance.now();
    await consumer.retry(await next(), { reason: 'not yet', delayMs: 2_200 });
    await record(store, 'transaction-2', 'b', 'c', 'd');
    const names: string[] = [];
    let event = await next();
    for (; nameOf(event.event) !== 'late'; event = await next()) {
      names.push(nameOf(event.event));
      await consumer.ack([event]);
    }
    expect(names).toEqual(['b', 'c', 'd']);
    expect(event.retryCount).toBe(1);
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(2_190);
  });

  test('is made again by its consumer if somebody deletes it on the server', async () => {
    const { double, store, consumer, told, next } = await opened();
    await record(store, 'transaction-1', 'a');
    await consumer.ack([await next()]);
    const coming = next();
    await openClient(double.url).deletePersistentSubscriptionToAll('g');
    expect(nameOf((await coming).event)).toBe('a'); // the new group begins with the log
    await record(store, 'transaction-2', 'b');
    expect(nameOf((await next()).event)).toBe('b');
    expect([told.length > 0, told.at(-1)]).toEqual([true, undefined]);
  });

  test('acknowledges what it is not for many at a time: before an event that it is for, soon, and at its end', async () => {
    const { double, store, next, end } = await opened();
    const client = openClient(double.url);
    const unanswered = async (): Promise<number | undefined> => {
      const { connections } = await client.getPersistentSubscriptionToAllInfo('g');
      return connections[0]?.inFlightMessages;
    };
    const acknowledged = () => double.acknowledged.reduce((sum, events) => sum + events, 0);
    const unwanted = Array.from({ length: 40 }, (_, n) => `unwanted ${n}`);
    const first = next();
    for (const name of unwanted) await record(store, 'account-1', name);
    await record(store, 'transaction-1', 'a');
    expect(nameOf((await first).event)).toBe('a');
    await expect.poll(unanswered).toBe(1);
    const last = next();
    await record(store, 'account-2', ...unwanted);
    await expect.poll(acknowledged).toBeGreaterThanOrEqual(2 * unwanted.length);
    await expect.poll(unanswered).toBe(1);
    expect(double.acknowledged.length).toBeLessThan(unwanted.length);
    const before = acknowledged();
    await record(store, 'account-3', ...unwanted);
    await expect.poll(unanswered, { interval: 5 }).toBeGreaterThan(1);
    end.abort();
    await last;
    await expect.poll(acknowledged).toBeGreaterThan(before);
  });

  test('takes other prefixes, and keeps its position', async () => {
    const { store, subscriptions, consumer, next } = await opened();
    await record(store, 'account-1', 'before');
    await record(store, 'transaction-1', 'a');
    await consumer.ack([await next()]);
    await subscriptions.ensureGroup('g', { ...SETTINGS, prefixes: ['account-'] });
    const end = new AbortController();
    onTestFinished(() => end.abort());
    const accounts = subscriptions.consume('g', { bufferSize: 2, signal: end.signal });
    await record(store, 'transaction-2', 'b');
    await record(store, 'account-2', 'after');
    for await (const event of accounts) {
      expect(nameOf(event.event)).toBe('after');
      break;
    }
  });

  test('that does not exist is refused', async () => {
    const { subscriptions } = await opened();
    const { signal } = new AbortController();
    expect(() => subscriptions.consume('other', { bufferSize: 1, signal })).toThrow('no group other');
  });

  test('does not hand out the event that marks an erasure', async () => {
    const { store, next } = await opened();
    await store.erase('transaction-1');
    await record(store, 'transaction-2', 'b');
    expect(nameOf((await next()).event)).toBe('b');
  });
});
