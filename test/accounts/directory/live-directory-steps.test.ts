import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { Directory } from '../../../projections/directory.ts';
import { LiveDirectory } from '../../../src/accounts/directory/live-directory.ts';
import { loadDirectory } from '../../../src/accounts/directory/load-directory.ts';
import { restoreDirectory } from '../../../src/accounts/directory/restore-directory.ts';
import {
  DIRECTORY_SNAPSHOT_VERSION,
  snapshotParts,
} from '../../../src/accounts/directory/snapshots/snapshot.ts';
import type {
  DirectorySnapshots,
  SnapshotHeader,
} from '../../../src/accounts/directory/snapshots/snapshots.ts';
import { openSqliteDirectorySnapshots } from '../../../src/accounts/directory/snapshots/sqlite.ts';
import { openSqliteCoordination } from '../../../src/coordination/sqlite.ts';
import { FuelError } from '../../../src/errors.ts';
import type { EventStore, SubscriptionBatch } from '../../../src/event-store/event-store.ts';
import { storeIdentity } from '../../../src/event-store/store-identity.ts';
import { keyIssued, onKey, opened } from '../../support/accounts/account-samples.ts';
import { sealKeys } from '../../support/accounts/seal-keys.ts';
import { openPushStores } from '../../support/deliveries/push-stores.ts';
import { storeWith } from '../../support/event-store/store-with.ts';
import { memoryLog } from '../../support/service/api.ts';
import { until } from '../../support/waiting.ts';

const unavailable = (): never => {
  throw new FuelError('STORE_UNAVAILABLE', 'away');
};

/** A store whose log is followed batch by batch, as a test hands them over. */
function handed(store: EventStore) {
  const steps: (SubscriptionBatch | Error)[] = [];
  let wake = (): void => undefined;
  const hand = (...given: typeof steps): void => {
    steps.push(...given);
    wake();
  };
  const followed = storeWith(store, {
    async *subscribe({ signal }) {
      signal.addEventListener('abort', () => wake());
      while (!signal.aborted) {
        const step = steps.shift();
        if (step instanceof Error) throw step;
        if (step !== undefined) yield step;
        else await new Promise<void>((resolve) => (wake = resolve));
      }
    },
  });
  return { followed, hand };
}

function machine() {
  const stores = openPushStores();
  const { clock, store, folder } = stores;
  const snapshots = openSqliteDirectorySnapshots({ path: join(folder, 'directory.db'), keys: sealKeys(1) });
  const coordination = openSqliteCoordination({ path: join(folder, 'control.db'), clock });
  onTestFinished(() => Promise.all([snapshots.close(), coordination.close()]).then(() => undefined));

  /** A process on this store; it saves snapshots where `saves`. */
  function start(on: EventStore = store, saves: DirectorySnapshots | undefined = undefined) {
    const lines: Record<string, unknown>[] = [];
    const told: string[] = [];
    /** What the directory was when a move was reported. */
    const moved: unknown[] = [];
    const stopping = new AbortController();
    const live: LiveDirectory = new LiveDirectory({
      ...{
        store: on,
        directory: new Directory(),
        clock,
        log: memoryLog(lines),
        signal: stopping.signal,
        snapshots,
      },
      ...(saves && { saving: { snapshots: saves, coordination, holder: 'this' } }),
      onMoved: (position) =>
        moved.push({ position, of: live.directory.position, isCaughtUp: live.isCaughtUp }),
      onEvent: ({ type }) => told.push(`${type} ${live.directory.account(7)?.revision}`),
    });
    const ended = live.run();
    const stop = async (): Promise<void> => {
      stopping.abort();
      await ended;
    };
    onTestFinished(stop);
    return { live, lines, told, moved, ended, stop, abort: () => stopping.abort() };
  }

  /** Saves the directory as of now; accounts of `closed` as by a version that could not read their first event. */
  async function save(
    options: { closed?: readonly number[]; anchor?: object } = {},
  ): Promise<SnapshotHeader> {
    const directory = await loadDirectory(store);
    const [last] = (await store.readBackwards({ prefixes: ['account-'], limit: 1 })).events;
    if (last === undefined) throw new Error('nothing was recorded');
    const accounts = [...directory.states()].map((state) =>
      options.closed?.includes(state.id)
        ? { ...state, packed: undefined, unreadable: { position: 1, revision: 0, reason: 'new' } }
        : state,
    );
    const header = {
      version: DIRECTORY_SNAPSHOT_VERSION,
      storeId: await storeIdentity(store, clock),
      position: last.position,
    };
    const anchor = { ...last, eventId: last.id, ...options.anchor };
    await snapshots.save(header, snapshotParts({ anchor, events: [], accounts }));
    return header;
  }
  return { ...stores, snapshots, start, save };
}

test('a move is reported when the directory is there, and knows that it has caught up', async () => {
  const { store, account, start } = machine();
  await account(opened());
  const { followed, hand } = handed(store);
  const { moved } = start(followed);
  const events = await store.readStream('account-7');
  hand(
    { events, position: 5, checkpoint: 5, caughtUp: true },
    { events: [], position: 9, checkpoint: 9, caughtUp: true },
  );
  await until(async () => moved.length === 2, 5_000);
  expect(moved).toEqual([
    { position: 5, of: 5, isCaughtUp: true },
    { position: 9, of: 9, isCaughtUp: true },
  ]);
});

test('an event is reported once the directory has applied it', async () => {
  const { account, start } = machine();
  await account(opened(), keyIssued(), onKey('KeySwitchedOff'));
  const { live, told } = start();
  await live.whenCaughtUp;
  expect(told).toEqual(['AccountOpened 0', 'KeyIssued 1', 'KeySwitchedOff 2']);
});

test('a heartbeat of the store, without any event, ends its silence', async () => {
  const { store, clock, start } = machine();
  const { followed, hand } = handed(store);
  const { live, moved } = start(followed);
  hand({ events: [], position: 0, checkpoint: 0, caughtUp: true });
  await live.whenCaughtUp;
  clock.advance(70_000);
  hand({ events: [], position: 0, checkpoint: 0, caughtUp: true });
  await until(async () => moved.length === 2, 5_000);
  expect(live.silenceMs).toBeLessThan(60_000);
});

test('a store that answers again is said to be available with the first batch', async () => {
  const { store, start } = machine();
  const { followed, hand } = handed(store);
  const { lines, moved } = start(followed);
  hand(new FuelError('STORE_UNAVAILABLE', 'away'), {
    events: [],
    position: 0,
    checkpoint: 0,
    caughtUp: true,
  });
  await until(async () => moved.length === 1, 5_000);
  expect(lines.map(({ msg }) => msg)).toEqual([
    'directory waits: a store is unavailable',
    'directory continues: the store is available again',
    'directory caught up',
  ]);
});

test('a process that stops while it saves a snapshot has ended when that is done', async () => {
  const { store, account, snapshots, start } = machine();
  await account(opened(), ...Array.from({ length: 999 }, () => onKey('WebhookFailing')));
  const [saving, finish] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const steps: string[] = [];
  const { abort, ended } = start(store, {
    ...snapshots,
    async save() {
      saving.resolve();
      await finish.promise;
      steps.push('saved');
    },
  });
  await saving.promise;
  abort();
  const isEnded = ended.then(() => void steps.push('ended'));
  setImmediate(finish.resolve);
  await isEnded;
  expect(steps).toEqual(['saved', 'ended']);
});

test('what a directory was restored from is in what it hands over, with nothing new recorded', async () => {
  const { account, store, snapshots, start, save } = machine();
  await account(opened(), keyIssued(), onKey('KeySwitchedOff'));
  const first = start();
  await first.live.whenCaughtUp;
  await first.stop();
  const { content } = first.live;
  if (content === undefined) throw new Error('the first one has applied events');
  const events = [...content.events];
  await snapshots.save(await save(), snapshotParts({ ...content, events }));
  const second = start();
  await second.live.whenCaughtUp;
  expect(second.told).toEqual(['KeySwitchedOff 2']);
  const again = second.live.content;
  expect({ anchor: again?.anchor, events: [...(again?.events ?? [])] }).toEqual({
    anchor: content.anchor,
    events,
  });
  expect((await loadDirectory(store, snapshots)).position).toBe(await store.head());
});

test('a snapshot of a copy of this log, with the same events at other positions, is not used', async () => {
  const { account, start, save } = machine();
  await account(opened(), keyIssued());
  await save({ anchor: { position: 1_000 } });
  const { live, lines } = start();
  await live.whenCaughtUp;
  expect(lines).toContainEqual(
    expect.objectContaining({ reason: expect.stringContaining('is another one') }),
  );
  expect(live.directory.account(7)?.revision).toBe(1);
});

test('what was recorded after a snapshot is reported once, also of an account that is read anew', async () => {
  const { account, start, save } = machine();
  await account(opened(), keyIssued(), onKey('KeySwitchedOff'));
  await save({ closed: [7] });
  await account(onKey('KeySwitchedOn'), onKey('KeySwitchedOff'));
  const { live, told } = start();
  await live.whenCaughtUp;
  expect(live.directory.account(7)).toMatchObject({ revision: 4, unreadable: null });
  expect(told).toEqual(['KeySwitchedOff 2', 'KeySwitchedOn 3', 'KeySwitchedOff 4']);
});

test('a store that becomes unavailable during the restore leaves the directory empty', async () => {
  const { account, store, clock, snapshots, save } = machine();
  await account(opened(), keyIssued());
  await save({ closed: [7] });
  const directory = new Directory();
  const on = storeWith(store, { readStreams: unavailable });
  await expect(restoreDirectory({ directory, snapshots, store: on, clock })).rejects.toThrow('away');
  expect([directory.position, [...directory.accounts()]]).toEqual([0, []]);
});

test('a snapshot that is replaced while it is read is read once more', async () => {
  const { account, store, clock, snapshots, save } = machine();
  await account(opened());
  const header = await save();
  let loads = 0;
  const replaced = {
    async load() {
      loads += 1;
      const stored = await snapshots.load();
      // biome-ignore lint/correctness/useYield: it ends before the first part
      const gone = (async function* (): AsyncGenerator<Uint8Array> {
        throw new Error('0 of 2 chunks were read');
      })();
      return stored && loads === 1 ? { ...stored, parts: gone } : stored;
    },
  };
  const directory = new Directory();
  const restoring = await restoreDirectory({ directory, snapshots: replaced, store, clock });
  expect([restoring.kind, loads, directory.position]).toEqual(['restored', 2, header.position]);
});
