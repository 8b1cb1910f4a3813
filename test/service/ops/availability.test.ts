import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Directory } from '../../../src/accounts/directory/fold/directory.ts';
import { LiveDirectory } from '../../../src/accounts/directory/live-directory.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { FuelError } from '../../../src/base/errors.ts';
import { silentLog } from '../../../src/base/log.ts';
import { openSqliteEventStore } from '../../../src/engines/sqlite/event-store/event-store.ts';
import { type CheckedEngine, EngineHealth } from '../../../src/service/engines/engine-health.ts';
import { accessState, readiness, Standing } from '../../../src/service/ops/standing.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { until } from '../../support/waiting.ts';

const MAX_AGE_MS = 60_000;
const CAUGHT_UP = {
  directory_caught_up: true,
  known_to_others: true,
  accounts_up_to_date: true,
  event_store_heard: true,
  not_stopping: true,
};

/** A process whose directory has not caught up yet, on engines that answer or not. */
function process(
  options: {
    readonly away?: readonly CheckedEngine['name'][];
    subscription?: { missing: string | undefined; wasReady: boolean };
    disk?: { readonly isNeeded: boolean; readonly refusal: string | undefined };
  } = {},
) {
  const clock = new FakeClock();
  const store = openSqliteEventStore({ path: join(temporaryFolder(), 'events.db'), clock });
  const stopping = new AbortController();
  const live = new LiveDirectory({
    store,
    directory: new Directory(),
    clock: systemClock, // the time of day does not matter
    steady: clock,
    log: silentLog,
    signal: stopping.signal,
  });
  let following: Promise<void> | undefined;
  /** Follows the log to its end and no further. From then on the store is silent. */
  const catchUp = async (): Promise<void> => {
    following = live.run();
    await until(() => live.isCaughtUp);
    stopping.abort();
    await following;
  };
  onTestFinished(async () => {
    stopping.abort();
    await following;
    await store.close();
  });
  const engine = (name: CheckedEngine['name']): CheckedEngine => ({
    name,
    serves: name === 'eventstoredb' ? ['events'] : ['tables'],
    ping: async () => {
      if (options.away?.includes(name)) throw new FuelError('STORE_UNAVAILABLE', name);
    },
  });
  const { subscription, disk } = options;
  const standing = new Standing();
  standing.mustReach(0);
  standing.knownUntil(Number.MAX_SAFE_INTEGER);
  const conditions = {
    live,
    maxAgeMs: MAX_AGE_MS,
    standing,
    store: {},
    rows: { condition: true } as const,
    engines: new EngineHealth([engine('eventstoredb'), engine('mongodb')], clock),
    subscription,
    disk: disk && (async () => disk),
    writes: disk?.isNeeded ?? true,
  };
  const availability = {
    state: () => accessState(conditions),
    readiness: () => readiness(conditions),
  };
  return { clock, standing, availability, catchUp };
}

describe('access can be judged', () => {
  test('only by a process that commands wait for', async () => {
    const { standing, availability, catchUp } = process();
    await catchUp();
    expect(availability.state()).toBe('ready');
    standing.knownUntil(0);
    expect(availability.state()).toBe('unavailable');
    expect(await availability.readiness()).toMatchObject({
      ready: false,
      checks: { known_to_others: false },
      reasons: { known_to_others: 'this process has not been able to report itself to the others recently' },
    });
  });

  test.each([true, false])(
    'without a disk that takes commits; ready is who needs none: %s',
    async (isNeeded) => {
      const refusal = 'the disk of /data is full';
      const { availability, catchUp } = process({ disk: { isNeeded, refusal } });
      await catchUp();
      expect(availability.state()).toBe('ready');
      expect(await availability.readiness()).toMatchObject({
        ready: !isNeeded,
        checks: { disk: false },
        reasons: { disk: refusal },
      });
    },
  );

  test('once the directory has caught up', async () => {
    const { availability, catchUp } = process();
    expect(availability.state()).toBe('unavailable');
    expect(await availability.readiness()).toMatchObject({
      ready: false,
      checks: { directory_caught_up: false, event_store_heard: false, not_stopping: true },
      reasons: {
        directory_caught_up: 'the directory is at position 0 and has not reached the end of the log',
        event_store_heard: 'the event store has not answered for too long',
      },
    });
    await catchUp();
    expect(availability.state()).toBe('ready');
    expect(await availability.readiness()).toEqual({
      ready: true,
      checks: { ...CAUGHT_UP, eventstoredb: true, mongodb: true },
    });
  });

  test('for as long after the event store was heard from as the directory may be old', async () => {
    const { availability, catchUp, clock } = process();
    await catchUp();
    clock.advance(MAX_AGE_MS);
    expect(availability.state()).toBe('ready');
    clock.advance(1);
    expect(availability.state()).toBe('unavailable');
    expect(await availability.readiness()).toMatchObject({
      ready: false,
      checks: { ...CAUGHT_UP, event_store_heard: false },
    });
  });

  test('also while the service stops, which is not ready then', async () => {
    const { standing, availability, catchUp } = process();
    await catchUp();
    standing.stopping();
    expect(availability.state()).toBe('ready');
    expect(await availability.readiness()).toMatchObject({
      ready: false,
      checks: { ...CAUGHT_UP, not_stopping: false },
      reasons: { not_stopping: 'the process is stopping' },
    });
  });
});

describe('readiness', () => {
  test('shows an unavailable event store, and does not end with it at once', async () => {
    const { availability, catchUp } = process({ away: ['eventstoredb'] });
    await catchUp();
    expect(await availability.readiness()).toEqual({
      ready: true,
      checks: { ...CAUGHT_UP, eventstoredb: false, mongodb: true },
      reasons: { eventstoredb: 'eventstoredb' },
    });
  });

  test('ends with MongoDB, while requests are judged as before', async () => {
    const { availability, catchUp } = process({ away: ['mongodb'] });
    await catchUp();
    expect(await availability.readiness()).toEqual({
      ready: false,
      checks: { ...CAUGHT_UP, eventstoredb: true, mongodb: false },
      reasons: { mongodb: 'mongodb' },
    });
    expect(availability.state()).toBe('ready');
  });

  test('needs the subscription where webhooks are delivered until it was connected once; requests do not depend on it', async () => {
    const subscription = { missing: 'NotLeader' as string | undefined, wasReady: false };
    const { availability, catchUp } = process({ subscription });
    await catchUp();
    const waiting = {
      checks: { ...CAUGHT_UP, subscription_connected: false, eventstoredb: true, mongodb: true },
      reasons: { subscription_connected: 'NotLeader' },
    };
    expect(await availability.readiness()).toEqual({ ready: false, ...waiting });
    expect(availability.state()).toBe('ready');
    subscription.wasReady = true;
    expect(await availability.readiness()).toEqual({ ready: true, ...waiting });
    subscription.missing = undefined;
    expect(await availability.readiness()).toMatchObject({
      ready: true,
      checks: { ...CAUGHT_UP, subscription_connected: true },
    });
  });
});
