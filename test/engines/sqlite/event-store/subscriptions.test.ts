import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { SqliteEventStore } from '../../../../src/engines/sqlite/event-store/event-store.ts';
import type { GroupEvent } from '../../../../src/event-store/event-store.ts';
import {
  persistentSubscriptionsContract,
  type SubscriptionsUnderTest,
} from '../../../contracts/persistent-subscriptions.contract.ts';
import { persistentSubscriptionsBufferContract } from '../../../contracts/persistent-subscriptions-buffer.contract.ts';
import {
  consume,
  openForTest,
  openGroup,
  openIn,
  SETTINGS,
} from '../../../support/event-store/embedded-subscriptions.ts';
import { flipData } from '../../../support/event-store/flip-bytes.ts';
import { nameOf, record } from '../../../support/event-store/store-events.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';

const CLAIMER = join(import.meta.dirname, '../../../support/event-store/claim-and-die.ts');

async function underTest(): Promise<SubscriptionsUnderTest> {
  const clock = new FakeClock();
  return { ...openIn(temporaryFolder(), clock), pass: async (ms) => clock.advance(ms) };
}

persistentSubscriptionsContract(underTest);
persistentSubscriptionsBufferContract(underTest);

describe('the embedded persistent subscriptions', () => {
  test('hand out the events of a killed process once its lease has ended', async () => {
    const folder = temporaryFolder();
    // The other process uses the system's clock; the clock of this one can be moved past the lease.
    let aheadMs = 0;
    const { store, subscriptions } = openForTest(folder, { now: () => Date.now() + aheadMs });
    await subscriptions.ensureGroup('g', { ...SETTINGS, ackTimeoutMs: 60_000 });
    await record(store, 'transaction-1', 'a');
    const files = [join(folder, 'events.db'), join(folder, 'subscriptions.db')];
    const [, killedBy] = await once(spawn(process.execPath, [CLAIMER, ...files, 'g']), 'exit');
    expect(killedBy).toBe('SIGKILL');
    const events = consume(subscriptions);
    const next = events.next();
    aheadMs = 60_000;
    expect((await next).value).toMatchObject({ event: { data: { name: 'a' } }, retryCount: 1 });
    await events.return(undefined);
  });

  test('hand out the events of a process that was killed while the clock was ahead', async () => {
    const folder = temporaryFolder();
    const { store, subscriptions } = openForTest(folder, { now: () => Date.now() - 3_600_000 });
    await subscriptions.ensureGroup('g', { ...SETTINGS, ackTimeoutMs: 60_000 });
    await record(store, 'transaction-1', 'a');
    const files = [join(folder, 'events.db'), join(folder, 'subscriptions.db')];
    await once(spawn(process.execPath, [CLAIMER, ...files, 'g']), 'exit');
    const events = consume(subscriptions);
    expect((await events.next()).value).toMatchObject({ event: { data: { name: 'a' } }, retryCount: 1 });
    await events.return(undefined);
  });

  test('hand out a retried event at once where the clock is set back while they wait', async () => {
    const clock = new FakeClock();
    const { store, subscriptions } = await openGroup({ clock });
    await record(store, 'transaction-1', 'a');
    const events = consume(subscriptions);
    const { value } = await events.next();
    await events.consumer.retry(value, { reason: 'later', delayMs: 30_000 });
    const next = events.next();
    await sleep(60);
    clock.advance(-3_600_000);
    expect((await next).value).toMatchObject({ event: { data: { name: 'a' } } });
    await events.return(undefined);
  });

  test('share a group between two openings of the files, and hand out no event twice', async () => {
    const folder = temporaryFolder();
    const clock = new FakeClock();
    const openings = [openForTest(folder, clock), openForTest(folder, clock)];
    const store = openings[0]?.store as SqliteEventStore;
    await openings[0]?.subscriptions.ensureGroup('g', SETTINGS);
    const expected = Array.from({ length: 40 }, (_, index) => `e${index}`);
    const seen: string[] = [];
    const end = new AbortController();
    const working = openings.map(async ({ subscriptions }) => {
      const consumer = subscriptions.consume('g', { bufferSize: 4, signal: end.signal });
      for await (const event of consumer) {
        seen.push(nameOf(event.event));
        await consumer.ack([event]);
        if (seen.length === expected.length) end.abort();
      }
    });
    for (const name of expected) await record(store, `transaction-${name}`, name);
    await Promise.all(working);
    expect(seen.sort()).toEqual(expected.sort());
  });

  test('return at once the events that a stopped consumer has claimed and not handed out', async () => {
    const { store, subscriptions } = await openGroup();
    await record(store, 'transaction-1', 'a', 'b', 'c');
    const first = consume(subscriptions);
    expect(nameOf((await first.next()).value.event)).toBe('a');
    first.end();
    await first.next();
    const second = consume(subscriptions);
    const rest: GroupEvent[] = [(await second.next()).value, (await second.next()).value];
    expect(rest.map(({ event, retryCount }) => [nameOf(event), retryCount])).toEqual([
      ['b', 0],
      ['c', 0],
    ]);
    await second.return(undefined);
  });

  test('do not hand out buffered events whose lease has ended', async () => {
    const clock = new FakeClock();
    const { store, subscriptions } = await openGroup({ clock });
    await record(store, 'transaction-1', 'a', 'b');
    const slow = consume(subscriptions);
    await slow.next();
    clock.advance(SETTINGS.ackTimeoutMs);
    const other = consume(subscriptions);
    expect((await other.next()).value).toMatchObject({ event: { data: { name: 'a' } }, retryCount: 1 });
    expect((await other.next()).value).toMatchObject({ event: { data: { name: 'b' } }, retryCount: 1 });
    const late = slow.next();
    slow.end();
    expect(await late).toMatchObject({ done: true });
    await other.return(undefined);
  });

  test('hand out new events although erased ones are due, which take no capacity', async () => {
    const clock = new FakeClock();
    const { store, subscriptions } = await openGroup({ clock });
    await record(store, 'transaction-1', 'a');
    const first = consume(subscriptions);
    await first.next();
    await first.return(undefined);
    await store.erase('transaction-1');
    await record(store, 'transaction-2', 'b');
    clock.advance(SETTINGS.ackTimeoutMs);
    const second = consume(subscriptions, 1);
    expect(nameOf((await second.next()).value.event)).toBe('b');
    await second.return(undefined);
  });

  test('hand out events in the order in which they are due', async () => {
    const clock = new FakeClock();
    const { store, subscriptions } = await openGroup({ clock });
    await record(store, 'transaction-1', 'a', 'b');
    const end = new AbortController();
    const consumer = subscriptions.consume('g', { bufferSize: 2, signal: end.signal });
    const events = consumer[Symbol.asyncIterator]() as AsyncGenerator<GroupEvent>;
    for (const delayMs of [3_000, 1_000]) {
      await consumer.retry((await events.next()).value, { reason: 'once more', delayMs });
    }
    await events.return(undefined);
    clock.advance(3_000);
    const later = consume(subscriptions, 2);
    const names = [(await later.next()).value, (await later.next()).value].map(({ event }) => nameOf(event));
    expect(names).toEqual(['b', 'a']);
    await later.return(undefined);
  });

  test('do not return the buffered events of a stopped consumer whose lease has ended', async () => {
    const clock = new FakeClock();
    const { store, subscriptions } = await openGroup({ clock });
    await record(store, 'transaction-1', 'a', 'b');
    const slow = consume(subscriptions);
    await slow.next();
    clock.advance(SETTINGS.ackTimeoutMs);
    const other = consume(subscriptions);
    for (let time = 0; time < 2; time++) await other.next();
    slow.end();
    await slow.next(); // returns what it has not handed out
    const third = consume(subscriptions);
    const next = third.next();
    await sleep(60);
    third.end();
    expect(await next).toMatchObject({ done: true });
    await other.return(undefined);
  });

  test('list events parked at the same time in the order of the log', async () => {
    const { store, subscriptions } = await openGroup();
    await record(store, 'transaction-1', 'a', 'b', 'c');
    const events = consume(subscriptions);
    const held: GroupEvent[] = [];
    while (held.length < 3) held.push((await events.next()).value);
    for (const event of held.toReversed()) await events.consumer.park(event, 'parked');
    expect((await subscriptions.parked('g')).map(({ event }) => nameOf(event))).toEqual(['a', 'b', 'c']);
    await events.return(undefined);
  });

  test('apply new settings from then on, and keep the group’s position', async () => {
    const { store, subscriptions } = await openGroup();
    await record(store, 'transaction-1', 'a');
    await record(store, 'account-1', 'passed over');
    const before = consume(subscriptions);
    const a: GroupEvent = (await before.next()).value;
    await subscriptions.ensureGroup('g', { ...SETTINGS, prefixes: ['account-'] });
    await before.consumer.ack([a]);
    await before.return(undefined);
    await record(store, 'transaction-2', 'b');
    await record(store, 'account-2', 'c');
    const after = consume(subscriptions);
    expect(nameOf((await after.next()).value.event)).toBe('c');
    await after.return(undefined);
  });

  test('refuse to consume a group that does not exist', async () => {
    const { subscriptions } = openForTest(temporaryFolder(), new FakeClock());
    await expect(consume(subscriptions).next()).rejects.toMatchObject({ code: 'REFUSED' });
  });

  test('start over after an older backup of the store was restored, instead of skipping events', async () => {
    const folder = temporaryFolder();
    const { store, subscriptions } = openIn(folder, new FakeClock());
    for (const group of ['g', 'behind']) await subscriptions.ensureGroup(group, SETTINGS);
    await record(store, 'transaction-1', 'a');
    const { signal } = new AbortController();
    const behind = subscriptions.consume('behind', { bufferSize: 1, signal });
    for await (const event of behind) {
      await behind.park(event, 'parked');
      break;
    }
    await record(store, 'transaction-1', 'b');
    const events = consume(subscriptions);
    await events.next();
    await events.return(undefined);
    await subscriptions.close();
    await store.close();
    for (const end of ['', '-wal', '-shm']) rmSync(join(folder, `events.db${end}`), { force: true });
    const restored = openForTest(folder, new FakeClock());
    await record(restored.store, 'transaction-9', 'c');
    const { value } = await consume(restored.subscriptions).next();
    expect(value?.event.stream).toBe('transaction-9');
    expect(await restored.subscriptions.parked('behind')).toMatchObject([{ reason: 'parked' }]);
  });

  test('keep their place and what is parked where the event at their position is damaged', async () => {
    const folder = temporaryFolder();
    const clock = new FakeClock();
    clock.advance(1_000);
    const { store, subscriptions } = openIn(folder, clock);
    await subscriptions.ensureGroup('g', SETTINGS);
    const large = (name: string) => Array.from({ length: 8 }, () => name.repeat(600)); // pages of their own
    await record(store, 'transaction-1', 'parked', ...large('before'), 'last '.repeat(600));
    const events = consume(subscriptions);
    await events.consumer.park((await events.next()).value, 'odd');
    for (let n = 0; n < 9; n++) await events.consumer.ack([(await events.next()).value]);
    await events.return(undefined);
    await record(store, 'account-1', ...large('behind'));
    await subscriptions.close();
    await store.close();
    flipData(join(folder, 'events.db'), 'last last');
    const opened = openForTest(folder, clock);
    await record(opened.store, 'transaction-3', 'next');
    const again = consume(opened.subscriptions);
    expect(nameOf((await again.next()).value.event)).toBe('next');
    expect(await opened.subscriptions.parked('g')).toHaveLength(1);
    await again.return(undefined);
  });

  test('start over too where the restored log has grown past their position', async () => {
    const folder = temporaryFolder();
    const clock = new FakeClock();
    const { store, subscriptions } = openIn(folder, clock);
    await subscriptions.ensureGroup('g', SETTINGS);
    await record(store, 'transaction-1', 'a');
    await record(store, 'account-1', 'passed over');
    const events = consume(subscriptions);
    const a: GroupEvent = (await events.next()).value;
    await events.consumer.ack([a]);
    await events.return(undefined);
    await subscriptions.close();
    await store.close();
    for (const end of ['', '-wal', '-shm']) rmSync(join(folder, `events.db${end}`), { force: true });
    clock.advance(1);
    const restored = openForTest(folder, clock);
    await record(restored.store, 'transaction-8', 'b', 'c', 'd');
    const again = consume(restored.subscriptions);
    expect(nameOf((await again.next()).value.event)).toBe('b');
    await again.return(undefined);
  });
});
