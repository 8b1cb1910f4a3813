import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { SqliteSubscriptions } from '../../../src/engines/sqlite/event-store/subscriptions.ts';
import type { EventStore, GroupEvent } from '../../../src/event-store/event-store.ts';
import { storeIdentity } from '../../../src/event-store/store-identity.ts';
import { type FollowerParts, followerStatus, statusOf } from '../../../src/operator/answers/follower.ts';
import { PROJECTOR_LEASE } from '../../../src/pull/view/projector.ts';
import { FOLLOWERS } from '../../../src/service/ops/followers.ts';
import { noRows, rowsAfter } from '../../support/accounts/rows-after.ts';
import { onFile, openPushStoresWith } from '../../support/deliveries/push-stores.ts';
import { replacing } from '../../support/interposed.ts';
import { confirmed, voided } from '../../support/transactions/e2e-samples.ts';
import { emptyView, openProjection, projectionOf } from '../../support/transactions/projector.ts';
import { showing } from '../../support/transactions/records.ts';

const projectionStatus = (
  store: FollowerParts['store'],
  view: FollowerParts['view'],
  coordination: FollowerParts['coordination'],
  clock: FollowerParts['clock'],
) => {
  const subscriptions = { status: async () => undefined, parked: async () => [] };
  return statusOf({ store, view, subscriptions, coordination, accounts: noRows(clock), clock }, FOLLOWERS[1]);
};

describe('the status of the transactions view', () => {
  test('has no lag if the view has everything, whatever other streams hold', async () => {
    const { store, view, coordination, clock, append, generation } = await emptyView(openProjection());
    await append('transaction-1', confirmed(1));
    await view.apply([], { generation, position: await store.head() });
    const position = await store.head();
    await append('account-7', { type: 'IntegrationEnabled', data: { account_id: 7 } });
    expect(await projectionStatus(store, view, coordination, clock)).toEqual({
      name: 'transactions',
      position,
      lag_seconds: 0,
      lag_events: 0,
      parked: 0,
      holder: null,
    });
  });

  test('counts the events that are not in the view, and reports the age of the first, the parked events and the holder', async () => {
    const { store, view, coordination, clock, append, generation, parked } = await emptyView(
      openProjection(),
    );
    await append('transaction-1', confirmed(1));
    await view.apply([], { generation, position: await store.head() });
    await append('transaction-2', confirmed(2), voided(2));
    clock.advance(4_600);
    await append('transaction-3', confirmed(3));
    await parked('transaction-8', 1);
    await parked('transaction-9', 2);
    await coordination.acquire(PROJECTOR_LEASE, 'this one', 1_000);
    expect(await projectionStatus(store, view, coordination, clock)).toMatchObject({
      lag_seconds: 5,
      lag_events: 3,
      parked: 2,
      holder: 'this one',
    });
  });

  test('counts an event that was recorded by a clock an hour ahead as an hour late', async () => {
    const { store, view, coordination, clock, append } = await emptyView(openProjection());
    clock.advance(3_600_000);
    await append('transaction-1', confirmed(1));
    clock.advance(-3_600_000);
    const lag = { lag_seconds: 3_600, lag_events: 1, holder: null };
    expect(await projectionStatus(store, view, coordination, clock)).toMatchObject(lag);
  });

  test('counts from the first event of the log if the view was never reset', async () => {
    const { store, view, coordination, clock, append } = openProjection();
    await append('transaction-1', confirmed(1));
    const status = await projectionStatus(store, view, coordination, clock);
    expect(status).toMatchObject({ position: 0, lag_events: 1 });
  });

  test('tells how far a build is: its rate while a process works on it, and later that it stopped', async () => {
    const { store, view, coordination, clock } = await emptyView(openProjection());
    const { generation } = await view.startBuild({
      storeId: await storeIdentity(store, clock),
      servesFrom: 200,
    });
    await coordination.acquire('view-build', 'one', 60_000);
    clock.advance(10_000);
    const changes = Array.from({ length: 40 }, (_, n) => showing({ id: n + 1 }));
    await view.apply(changes, { generation, position: 50 });
    const status = () => projectionStatus(store, view, coordination, clock);
    expect(await status()).toMatchObject({ rebuild: { percent: 25, rate: 4, seconds_left: 30 } });
    await coordination.release('view-build', 'one');
    expect(await status()).toMatchObject({ unfinished_rebuild_percent: 25 });
    expect(await status()).not.toHaveProperty('rebuild');
  });

  test('stops counting at more than 100,000 events', async () => {
    const { store, view, coordination, clock } = openProjection();
    let counted = 0;
    const statusOf = (total: number) => {
      const log = () =>
        batchesOf(total, (count) => {
          counted += count;
        });
      return projectionStatus(replacing(store, { subscribe: log }), view, coordination, clock);
    };
    expect(await statusOf(100_000)).toMatchObject({ lag_events: 100_000 });
    counted = 0;
    expect(await statusOf(1_000_000)).toMatchObject({ lag_events: null });
    expect(counted).toBeLessThan(102_000);
  });
});

describe('the status of a group', () => {
  /** The status of all followers but the view, and a consumer of `deliveries`. */
  async function followed() {
    const opened = await emptyView(projectionOf(openPushStoresWith(onFile)));
    const { store, view, coordination, clock, folder } = opened;
    const subscriptions = new SqliteSubscriptions({ path: join(folder, 'subscriptions.db'), store, clock });
    const ending = new AbortController();
    onTestFinished(async () => {
      ending.abort();
      await subscriptions.close();
    });
    const consume = async () => {
      await subscriptions.ensureGroup('deliveries', {
        prefixes: ['transaction-'],
        ackTimeoutMs: 5_000,
      });
      const consumer = subscriptions.consume('deliveries', { bufferSize: 10, signal: ending.signal });
      const events = consumer[Symbol.asyncIterator]();
      const next = async (): Promise<GroupEvent> => (await events.next()).value;
      return { consumer, next };
    };
    const status = async () => {
      const lines = await followerStatus({
        store,
        view,
        subscriptions,
        coordination,
        accounts: noRows(clock),
        clock,
      });
      expect(lines.map(({ name }) => name)).toEqual(['accounts', 'transactions', 'deliveries', 'notices']);
      return { deliveries: lines[2], notices: lines[3] };
    };
    return { ...opened, consume, status };
  }

  test('counts from the first event of its streams if the group does not exist yet', async () => {
    const { append, clock, status } = await followed();
    await append('transaction-1', confirmed(1));
    clock.advance(3_000);
    await append('transaction-2', confirmed(2));
    await append('account-7', { type: 'IntegrationEnabled', data: { account_id: 7 } });
    expect(await status()).toEqual({
      deliveries: { name: 'deliveries', position: 0, lag_seconds: 3, lag_events: 2, parked: 0, holder: null },
      notices: { name: 'notices', position: 0, lag_seconds: 0, lag_events: 1, parked: 0, holder: null },
    });
  });

  test('shows what was answered without a gap, what was parked, and the live processes of its role', async () => {
    const { store, append, clock, consume, status, coordination } = await followed();
    const { consumer, next } = await consume();
    for (const id of [1, 2, 3]) await append(`transaction-${id}`, confirmed(id));
    const [first, second, third] = [await next(), await next(), await next()];
    await consumer.ack([first, third]);
    expect((await status()).deliveries).toMatchObject({ position: first.event.position, lag_events: 2 });
    await consumer.park(second, 'odd');
    const report = { pid: process.pid, host: 'here', startedAtMs: 0, isReady: true };
    const seenAtMs = clock.now();
    await coordination.report({ ...report, id: 'one', roles: ['api', 'webhooks'], seenAtMs });
    await coordination.report({ ...report, id: 'two', roles: ['webhooks'], seenAtMs });
    expect(await status()).toMatchObject({
      deliveries: { position: await store.head(), lag_events: 0, parked: 1, holder: 'one, two' },
      notices: { holder: null },
    });
  });
});

test('the status of the notices is their checkpoint, and the holder of their lease', async () => {
  const opened = await emptyView(openProjection());
  const { store, view, coordination, clock, append } = opened;
  const subscriptions = { status: async () => undefined, parked: async () => [] };
  const accounts = noRows(clock);
  const status = async () =>
    (await followerStatus({ store, view, subscriptions, coordination, accounts, clock })).find(
      ({ name }) => name === 'notices',
    );
  await append('account-7', { type: 'IntegrationEnabled', data: { account_id: 7 } });
  const position = await store.head();
  const none = { name: 'notices', parked: 0, holder: null };
  expect(await status()).toEqual({ ...none, position: 0, lag_seconds: 0, lag_events: 1 });
  await coordination.moveCheckpoint('notices', { storeId: 'x', position, anchor: undefined });
  await coordination.acquire('notices', 'this one', 1_000);
  await append('account-7', { type: 'IntegrationDisabled', data: { account_id: 7 } });
  clock.advance(3_000);
  await coordination.acquire('notices', 'this one', 1_000);
  expect(await status()).toEqual({
    ...none,
    position,
    lag_seconds: 3,
    lag_events: 1,
    holder: 'this one',
  });
});

test('the status of the accounts is the position of their rows, with the accounts that cannot be read', async () => {
  const { store, view, coordination, clock } = openProjection();
  const accounts = await rowsAfter({ type: 'AccountOpened', data: {} });
  const subscriptions = { status: async () => undefined, parked: async () => [] };
  const [status] = await followerStatus({ store, view, subscriptions, coordination, accounts, clock });
  expect(status).toMatchObject({ name: 'accounts', position: 1, lag_events: 0, parked: 1, holder: null });
});

/** Events in batches of a thousand, of which only the times of recording matter. */
async function* batchesOf(
  total: number,
  handedOut: (count: number) => void,
): ReturnType<EventStore['subscribe']> {
  for (let position = 1_000; position <= total; position += 1_000) {
    handedOut(1_000);
    const events = Array.from({ length: 1_000 }, () => ({ recordedAtMs: 0 }) as never);
    yield { events, position, checkpoint: position, caughtUp: position === total };
  }
}

test('a glance finds the same age of the first event that is not done, without counting events', async () => {
  const { append, clock, ...stores } = await emptyView(openProjection());
  const status = async () => ({ position: await stores.store.head(), parked: 1 });
  await append('transaction-1', confirmed(1));
  clock.advance(4_600);
  await append('transaction-2', confirmed(2));
  const accounts = noRows(clock);
  const parts = { ...stores, accounts, clock, subscriptions: { status, parked: async () => [] } };
  const counted = await followerStatus(parts);
  expect(counted.map(({ lag_seconds, lag_events }) => [lag_seconds, lag_events])).toEqual([
    [5, 1],
    [5, 2],
    [0, 0],
    [0, 0],
  ]);
  const glanced = await followerStatus(parts, { glance: true });
  expect(glanced).toEqual(
    counted.map((follower) => ({ ...follower, lag_events: follower.lag_events === 0 ? 0 : null })),
  );
});
