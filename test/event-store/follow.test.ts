import { pino } from 'pino';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { FuelError } from '../../src/base/errors.ts';
import { openSqliteEventStore } from '../../src/engines/sqlite/event-store/event-store.ts';
import { type FollowOptions, follow } from '../../src/event-store/follow.ts';
import { memoryCoordination } from '../support/engines/coordination.ts';
import { MemoryLog, openMemoryEventStore } from '../support/engines/memory-log.ts';
import { nameOf, record } from '../support/event-store/store-events.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { passingTime } from '../support/steady-time.ts';

beforeEach(passingTime);

const STREAM = 'account-1';
const unavailable = () => new FuelError('STORE_UNAVAILABLE', 'the engine is down');

function start() {
  const clock = new FakeClock();
  const store = openMemoryEventStore(new MemoryLog(), clock);
  const coordination = memoryCoordination(clock);
  onTestFinished(() => store.close());
  const stopping = new AbortController();
  const said: { msg: string }[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void said.push(JSON.parse(line)) });
  const lease = { coordination, lease: 'part', holder: 'a', ttlMs: 60_000 };
  const following = (handle: FollowOptions['handle'], changed: Partial<FollowOptions> = {}) =>
    follow({
      component: 'part',
      store,
      streams: ['account-'],
      log,
      signal: stopping.signal,
      handle,
      checkpoint: async () => 0,
      ...changed,
    });
  return { store, coordination, stopping, said, lease, following };
}

test('after a restart it continues from the checkpoint as it is then', async () => {
  const { store, said, following } = start();
  const first = await record(store, STREAM, 'one');
  await record(store, STREAM, 'two');
  let stored = 0;
  const seen: string[][] = [];
  const handle: FollowOptions['handle'] = async ({ events }) => {
    seen.push(events.map(nameOf));
    stored = first;
    return seen.length === 1 ? { restartBecause: 'it was reset' } : 'done';
  };
  await following(handle, { checkpoint: async () => stored });
  expect(seen).toEqual([['one', 'two'], ['two']]);
  expect(said).toMatchObject([{ msg: 'part restarts from its checkpoint', reason: 'it was reset' }]);
});

test('a follower that keeps restarting leaves its thread to others, and can be stopped', async () => {
  const { stopping, said, following } = start();
  const store = openSqliteEventStore({ path: ':memory:', clock: new FakeClock() }); // reads without waiting for anything
  onTestFinished(() => store.close());
  await record(store, STREAM, 'one');
  setTimeout(() => stopping.abort(), 100);
  let handled = 0;
  const handle: FollowOptions['handle'] = async () => {
    handled += 1;
    if (handled > 1_000) throw new Error('nothing else in the thread got a turn');
    return { restartBecause: 'another one was faster' };
  };
  await following(handle, { store });
  expect(said).toHaveLength(1);
});

test('an outage ends when a batch was handled, not when it was read', async () => {
  const { store, said, following } = start();
  await record(store, STREAM, 'one');
  let tries = 0;
  await following(async () => {
    tries++;
    if (tries <= 2) throw unavailable();
    expect(said.filter(({ msg }) => msg.includes('available again'))).toHaveLength(tries - 3);
    await record(store, STREAM, 'next');
    return tries === 3 ? 'next' : 'done';
  });
  expect(tries).toBe(4);
});

test('a follower that waits no longer than a limit rejects with the outage', async () => {
  const { store, stopping, following } = start();
  await record(store, STREAM, 'one');
  let tries = 0;
  const handle = async () => {
    tries++;
    if (tries > 3) stopping.abort();
    throw unavailable();
  };
  await expect(following(handle, { maxUnavailableMs: 1 })).rejects.toThrow('the engine is down');
});

test('on standby it asks for the lease twice a second, and the answer ends an outage', async () => {
  const { coordination, stopping, said, lease, following } = start();
  let asked = 0;
  const acquire = async () => {
    asked++;
    if (asked === 1) throw unavailable();
    setTimeout(() => stopping.abort(), 50);
    return false;
  };
  const standby = { ...lease, coordination: { acquire, release: coordination.release } };
  await following(() => Promise.reject(new Error('worked')), { lease: standby });
  expect(asked).toBe(2);
  expect(said.filter(({ msg }) => msg.includes('available again'))).toHaveLength(1);
});

test('it reads no further when another has taken the lease', async () => {
  const { coordination, stopping, lease, following } = start();
  let acquired = 0;
  const acquire = async () => {
    acquired++;
    if (acquired === 3) stopping.abort(); // it is on standby
    return acquired === 1;
  };
  const lost = { ...lease, coordination: { acquire, release: coordination.release } };
  await following(async () => 'next', { lease: lost });
  expect(acquired).toBe(3);
});

test('once stopped it asks for nothing', async () => {
  const { stopping, following } = start();
  stopping.abort();
  const checkpoint = () => Promise.reject(new Error('asked'));
  await following(async () => 'next', { checkpoint });
});
