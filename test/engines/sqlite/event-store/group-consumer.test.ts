import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Signal } from '../../../../src/base/signal.ts';
import { Database } from '../../../../src/engines/sqlite/driver/database.ts';
import { SqliteGroup, SUBSCRIPTION_MIGRATIONS } from '../../../../src/engines/sqlite/event-store/group.ts';
import type { GroupEvent } from '../../../../src/event-store/event-store.ts';
import {
  consume,
  openForTest,
  openGroup,
  SETTINGS,
} from '../../../support/event-store/embedded-subscriptions.ts';
import { nameOf, record } from '../../../support/event-store/store-events.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';
import { until, within } from '../../../support/waiting.ts';

describe('a consumer of an embedded group', () => {
  test('stores how far it is past events that the group is not for, and writes nothing while there are no others', async () => {
    const folder = temporaryFolder();
    const { store, subscriptions } = await openGroup({ folder });
    await record(store, 'transaction-1', 'a');
    const events = consume(subscriptions);
    await events.consumer.ack([(await events.next()).value]);
    const next = events.next();
    const file = new DatabaseSync(join(folder, 'subscriptions.db'));
    const changes = (): unknown => file.prepare('PRAGMA data_version').get()?.data_version;
    const passed = await record(store, 'account-1', 'b');
    await until(async () => (await subscriptions.status('g'))?.position === passed);
    const before = changes();
    await sleep(100); // it claims several times
    expect(changes()).toBe(before);
    await record(store, 'transaction-2', 'e');
    expect(nameOf((await next).value.event)).toBe('e');
    file.close();
    await events.return(undefined);
  });

  test('is handed at its next poll what another consumer retries or gives back', async () => {
    const { store, subscriptions } = await openGroup();
    await record(store, 'transaction-1', 'a', 'b');
    const end = new AbortController();
    const consumer = subscriptions.consume('g', { bufferSize: 2, signal: end.signal });
    const first = consumer[Symbol.asyncIterator]() as AsyncGenerator<GroupEvent>;
    const event: GroupEvent = (await first.next()).value;
    const second = consume(subscriptions);
    const retried = second.next();
    await consumer.retry(event, { reason: 'once more', delayMs: 0 });
    const soon = (next: typeof retried) => within(next, 2_000, 'it did not look'); // the lease ends after five
    expect((await soon(retried)).value).toMatchObject({ event: { data: { name: 'a' } } });
    const released = second.next();
    await first.return(undefined);
    expect((await soon(released)).value).toMatchObject({ event: { data: { name: 'b' } } });
    await second.return(undefined);
  });

  test('is handed the next event as soon as it acknowledges, retries or parks one', async () => {
    const { store, subscriptions } = await openGroup({ pollMs: 60_000 });
    await record(store, 'transaction-1', 'a', 'b', 'c');
    const { signal } = new AbortController();
    const consumer = subscriptions.consume('g', { bufferSize: 1, signal });
    const events = consumer[Symbol.asyncIterator]() as AsyncGenerator<GroupEvent>;
    const a = (await events.next()).value;
    const afterPark = events.next();
    await sleep(30); // it waits for capacity by now
    await consumer.park(a, 'parked');
    const b = (await afterPark).value;
    const afterAck = events.next();
    await sleep(30);
    await consumer.ack([b]);
    expect([b, (await afterAck).value].map(({ event }) => nameOf(event))).toEqual(['b', 'c']);
    await events.return(undefined);
  });

  test('is handed at its next poll what is replayed', async () => {
    const { store, subscriptions } = await openGroup();
    await record(store, 'transaction-1', 'a');
    const events = consume(subscriptions);
    await events.consumer.park((await events.next()).value, 'parked');
    const next = events.next();
    expect(await subscriptions.replayParked('g')).toBe(1);
    expect((await next).value).toMatchObject({ event: { data: { name: 'a' } } });
    await events.return(undefined);
  });

  test('may end after its subscriptions were closed', async () => {
    const { store, subscriptions } = await openGroup();
    await record(store, 'transaction-1', 'a', 'b');
    const events = consume(subscriptions);
    await events.next();
    await subscriptions.close();
    expect(await events.return(undefined)).toMatchObject({ done: true });
  });

  test('leaves no timer behind when it ends', async () => {
    const { store, subscriptions } = await openGroup();
    await record(store, 'transaction-1', 'a');
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => {
      vi.useRealTimers();
    });
    const events = consume(subscriptions);
    await events.next();
    expect(vi.getTimerCount()).toBe(1);
    await events.return(undefined);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('continues at once over long ranges without a match', async () => {
    const folder = temporaryFolder();
    const { store, subscriptions } = openForTest(folder, new FakeClock(), 60_000);
    await subscriptions.ensureGroup('g', { ...SETTINGS, prefixes: ['transaction-7'] });
    const db = new DatabaseSync(join(folder, 'events.db'));
    db.exec(
      `INSERT INTO events (position, stream, revision, id, type, recorded_at, data, metadata)
       VALUES (35000, 'transaction-1', 0, 'x', 'TransactionConfirmed', 0, '{}', '{}')`,
    );
    db.close();
    await record(store, 'transaction-7', 'a');
    const events = consume(subscriptions);
    const next = await within(events.next(), 2_000, 'it waits between two steps');
    expect(nameOf(next.value.event)).toBe('a');
    await events.return(undefined);
  });

  test('sleeps while there is nothing to do', async () => {
    const { subscriptions } = await openGroup({ pollMs: 60_000 });
    const claiming = vi.spyOn(SqliteGroup.prototype, 'claim');
    const waking = vi.spyOn(Signal.prototype, 'wait');
    onTestFinished(() => {
      claiming.mockRestore();
      waking.mockRestore();
    });
    const events = consume(subscriptions);
    const next = events.next();
    await sleep(150);
    expect(claiming.mock.calls.length).toBeLessThan(4);
    expect(waking.mock.calls.length).toBeLessThan(4);
    events.end();
    await next;
  });
});

test('due events are claimed a few MiB at a time, as new ones are', async () => {
  const folder = temporaryFolder();
  const clock = new FakeClock();
  const { store, subscriptions } = openForTest(folder, clock);
  await subscriptions.ensureGroup('g', SETTINGS);
  for (let index = 0; index < 60; index++) {
    await record(store, `transaction-${index}`, `${index} ${'x'.repeat(100_000)}`);
  }
  const db = new Database(join(folder, 'subscriptions.db'), {
    migrations: SUBSCRIPTION_MIGRATIONS,
    durability: 'normal',
  });
  onTestFinished(() => db.close());
  const group = new SqliteGroup({ db, store, clock, group: 'g' });
  const claimAll = async (): Promise<number[]> => {
    const sizes: number[] = [];
    for (let more = true; more; ) {
      const claim = await group.claim('one', 100);
      if (claim.events.length > 0) sizes.push(claim.events.length);
      more = claim.more;
    }
    return sizes;
  };
  for (let round = 0; round < 2; round++) {
    const sizes = await claimAll();
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(60);
    expect(Math.max(...sizes)).toBeLessThan(25);
    clock.advance(SETTINGS.ackTimeoutMs);
  }
});
