import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Signal } from '../../../../src/base/signal.ts';
import { Database } from '../../../../src/engines/sqlite/driver/database.ts';
import { SqliteGroup, SUBSCRIPTION_MIGRATIONS } from '../../../../src/engines/sqlite/event-store/group.ts';
import type { GroupConsumer, GroupEvent } from '../../../../src/event-store/event-store.ts';
import {
  consume,
  openForTest,
  openGroup,
  SETTINGS,
} from '../../../support/event-store/embedded-subscriptions.ts';
import { nameOf, record } from '../../../support/event-store/store-events.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';
import { PATIENCE_MS, TOO_LATE_MS, until, within } from '../../../support/waiting.ts';

/** The waits for notifications from now on. */
function waits() {
  const waiting = vi.spyOn(Signal.prototype, 'wait');
  onTestFinished(() => waiting.mockRestore());
  return waiting;
}

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

  type Step = (consumer: GroupConsumer, event: GroupEvent) => Promise<unknown>;
  const STEPS: Readonly<Record<string, readonly [Step, string]>> = {
    acknowledges: [(consumer, event) => consumer.ack([event]), 'b'],
    parks: [(consumer, event) => consumer.park(event, 'parked'), 'b'],
    retries: [(consumer, event) => consumer.retry(event, { reason: 'once more', delayMs: 0 }), 'a'],
  };

  test.each(Object.entries(STEPS))(
    'whose buffer is full is handed the next event as soon as it %s one',
    async (_, [step, name]) => {
      const { store, subscriptions } = await openGroup({ pollMs: TOO_LATE_MS, ackTimeoutMs: TOO_LATE_MS });
      await record(store, 'transaction-1', 'a', 'b');
      const waiting = waits();
      const events = consume(subscriptions, 1);
      const { value } = await events.next();
      const next = events.next();
      await until(() => waiting.mock.calls.length > 0);
      await step(events.consumer, value);
      expect(nameOf((await within(next, PATIENCE_MS, 'it was not woken')).value.event)).toBe(name);
      await events.return(undefined);
    },
  );

  test('is handed an event of this process as soon as it is recorded', async () => {
    const { store, subscriptions } = await openGroup({ pollMs: TOO_LATE_MS });
    const waiting = waits();
    const events = consume(subscriptions);
    const next = events.next();
    await until(() => waiting.mock.calls.length > 0);
    await record(store, 'transaction-1', 'a');
    expect(nameOf((await within(next, PATIENCE_MS, 'it was not woken')).value.event)).toBe('a');
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
    const { store, subscriptions } = openForTest(folder, new FakeClock(), TOO_LATE_MS);
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
    const { subscriptions } = await openGroup({ pollMs: TOO_LATE_MS });
    const claiming = vi.spyOn(SqliteGroup.prototype, 'claim');
    onTestFinished(() => claiming.mockRestore());
    const waking = waits();
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
