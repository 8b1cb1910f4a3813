import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pino } from 'pino';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Directory } from '../../../projections/directory.ts';
import { readAccountEvent } from '../../../src/accounts/directory/apply-to-directory.ts';
import { LiveDirectory } from '../../../src/accounts/directory/live-directory.ts';
import { loadDirectory } from '../../../src/accounts/directory/load-directory.ts';
import {
  DIRECTORY_SNAPSHOT_VERSION,
  snapshotParts,
} from '../../../src/accounts/directory/snapshots/snapshot.ts';
import type {
  DirectorySnapshots,
  SnapshotHeader,
} from '../../../src/accounts/directory/snapshots/snapshots.ts';
import { openSqliteDirectorySnapshots } from '../../../src/accounts/directory/snapshots/sqlite.ts';
import { verifyDirectory } from '../../../src/agreement/verify-directory.ts';
import { openSqliteCoordination } from '../../../src/coordination/sqlite.ts';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import { FuelError } from '../../../src/errors.ts';
import type { EventStore, RecordedEvent, SubscribeOptions } from '../../../src/event-store/event-store.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import { openSqliteEventStore } from '../../../src/event-store/sqlite/event-store.ts';
import { storeIdentity } from '../../../src/event-store/store-identity.ts';
import { keyIssued, onKey, opened, PREFIX, webhookSet } from '../../support/accounts/account-samples.ts';
import { contentOf } from '../../support/accounts/directory-content.ts';
import { sealKeys } from '../../support/accounts/seal-keys.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { until } from '../../support/waiting.ts';

const AUTHOR = { actor: 'test', command: 'test' };
const contacts = (n: number): AccountEvent => ({
  type: 'AccountContactsSet',
  data: { account_id: 9, emails: [`${n}@example.com`] },
});

/** A machine with its stores, on which processes are started. */
function machine() {
  const folder = temporaryFolder();
  const clock = new FakeClock();
  const store = openSqliteEventStore({ path: join(folder, 'events.db'), clock });
  const snapshots = openSqliteDirectorySnapshots({ path: join(folder, 'directory.db'), keys: sealKeys(1) });
  const coordination = openSqliteCoordination({ path: join(folder, 'control.db'), clock });
  onTestFinished(async () => {
    for (const opened of [coordination, snapshots, store]) await opened.close();
  });

  async function record(stream: string, ...events: readonly AccountEvent[]): Promise<number> {
    const news = events.map((event) => newEvent(event, AUTHOR, clock.now()));
    const [result] = await store.append([{ stream, expected: 'any', events: news }]);
    if (result?.kind !== 'appended') throw new Error('not appended');
    return result.position;
  }

  /** Enough events for a snapshot, on account 9. */
  async function recordMany(): Promise<void> {
    await record('account-9', ...Array.from({ length: 1_000 }, (_, n) => contacts(n)));
  }

  /** Starts a process that follows the account streams and saves, and waits until it has caught up. */
  async function start(options: { readonly snapshots?: DirectorySnapshots; readonly holder?: string } = {}) {
    const begunAt: number[] = [];
    const told: { event: AccountEvent; position: number; atMs: number }[] = [];
    const lines: string[] = [];
    const stopping = new AbortController();
    const live = new LiveDirectory({
      store: watched(store, begunAt),
      directory: new Directory(),
      clock,
      log: pino({ level: 'info' }, { write: (line) => void lines.push(line) }),
      signal: stopping.signal,
      snapshots: options.snapshots ?? snapshots,
      saving: { snapshots: options.snapshots ?? snapshots, coordination, holder: options.holder ?? 'this' },
      onEvent: (event, place) => void told.push({ event, ...place }),
    });
    const running = live.run();
    const stop = async (): Promise<void> => {
      stopping.abort();
      await running;
    };
    onTestFinished(stop);
    await until(async () => live.isCaughtUp, 5_000);
    return { live, told, lines, begunAt, stop };
  }

  const savedAt = async () => (await snapshots.load())?.header.position;
  return { folder, store, snapshots, coordination, clock, record, recordMany, start, savedAt };
}

type Machine = ReturnType<typeof machine>;

/** Records the positions after which the store is followed. */
function watched(store: EventStore, begunAt: number[]): EventStore {
  const subscribe = (options: SubscribeOptions) => {
    begunAt.push(options.after);
    return store.subscribe(options);
  };
  return new Proxy(store, {
    get(target, name: keyof EventStore) {
      if (name === 'subscribe') return subscribe;
      return (target[name] as (...all: unknown[]) => unknown).bind(target);
    },
  });
}

const partsOf = (...texts: readonly string[]) => texts.map((text) => Buffer.from(text));

/** Saves what a process would that could not read some of the events, by its own account of them. */
async function saveAs(m: Machine, couldRead: (event: RecordedEvent) => boolean): Promise<SnapshotHeader> {
  const directory = new Directory();
  const events = (await m.store.readStreams(['account-7', 'account-9'])).flat();
  events.sort((a, b) => a.position - b.position);
  for (const recorded of events) {
    const decoded = couldRead(recorded)
      ? readAccountEvent(recorded)
      : ({ ok: false, reason: 'new' } as const);
    directory.apply({ ...recorded, decoded });
  }
  const last = events.at(-1);
  if (last === undefined) throw new Error('there are no events');
  const storeId = await storeIdentity(m.store, m.clock);
  const header = { version: DIRECTORY_SNAPSHOT_VERSION, storeId, position: directory.position };
  const anchor = { ...last, eventId: last.id };
  await m.snapshots.save(header, snapshotParts({ anchor, events: [], accounts: directory.states() }));
  return header;
}

describe('a process that starts', () => {
  test('starts from the snapshot that another has saved, and reads only what comes after it', async () => {
    const m = machine();
    await m.record('account-7', opened(), keyIssued(), webhookSet());
    const offAt = await m.record('account-7', onKey('KeySwitchedOff'));
    await m.record('account-7', onKey('KeySwitchedOn'));
    const enabledAt = await m.record('account-7', onKey('WebhookEnabled'));
    await m.record('account-9', opened('Other', 9));
    await m.recordMany();
    const first = await m.start();
    await until(async () => (await m.savedAt()) !== undefined, 5_000);
    await first.stop();
    const savedAt = await m.savedAt();
    const lastAt = await m.record('account-9', contacts(0));

    const second = await m.start();
    expect(second.begunAt).toEqual([savedAt]);
    expect(contentOf(second.live.directory)).toEqual(contentOf(await loadDirectory(m.store)));
    expect(second.told.map(({ event, position }) => [event.type, position])).toEqual([
      ['KeySwitchedOff', offAt],
      ['WebhookEnabled', enabledAt],
      ['AccountContactsSet', lastAt],
    ]);
    const all = new Map(first.told.map((placed) => [placed.position, placed]));
    for (const placed of second.told.slice(0, 2)) expect(placed).toEqual(all.get(placed.position));
  });

  test.each<[string, RegExp, (m: Machine) => Promise<void>]>([
    [
      'of another version',
      /version 99/,
      async (m) => m.snapshots.save({ ...(await saveAs(m, () => true)), version: 99 }, partsOf('{}')),
    ],
    [
      'of another event store',
      /event store elsewhere/,
      async (m) =>
        m.snapshots.save({ ...(await saveAs(m, () => true)), storeId: 'elsewhere' }, partsOf('{}')),
    ],
    [
      'from behind the end of the log',
      /the event store ends at/,
      async (m) => m.snapshots.save({ ...(await saveAs(m, () => true)), position: 1e9 }, partsOf('{}')),
    ],
    [
      'that is damaged',
      /JSON/,
      async (m) => m.snapshots.save(await saveAs(m, () => true), partsOf('{"accounts":[', '')),
    ],
    [
      'of a log that has gone another way since',
      /event 0 of account-9 is another one/,
      async (m) => {
        const anchor = { position: 1, stream: 'account-9', revision: 0, eventId: 'another' };
        const parts = snapshotParts({ anchor, events: [], accounts: [] });
        await m.snapshots.save(await saveAs(m, () => true), parts);
      },
    ],
  ])(
    'does not use a snapshot %s: it says why, reads every event and saves anew',
    async (_, reason, spoil) => {
      const m = machine();
      await m.record('account-9', opened('Other', 9));
      await m.recordMany();
      await spoil(m);
      const { live, begunAt, lines } = await m.start();
      expect(begunAt).toEqual([0]);
      expect(live.directory.account(9)?.revision).toBe(1_000);
      expect(lines.map((line) => JSON.parse(line).reason)).toContainEqual(expect.stringMatching(reason));
      await until(async () => lines.some((line) => line.includes('snapshot saved')), 5_000);
      const { begunAt: next } = await m.start();
      expect(next).toEqual([await m.savedAt()]);
    },
  );

  test('does not start from a snapshot that is said to be newer than it is, and soon replaces it', async () => {
    const m = machine();
    await m.record('account-7', opened(), keyIssued());
    await saveAs(m, () => true);
    const end = await m.record('account-7', onKey('KeySwitchedOff'));
    const db = new DatabaseSync(join(m.folder, 'directory.db'));
    db.prepare('UPDATE snapshot SET position = ?').run(end);
    db.close();
    const agreement = () => verifyDirectory({ ...m, snapshots: m.snapshots });
    expect((await agreement()).differences).toEqual([expect.stringContaining('not as it was saved')]);
    const { live, lines } = await m.start();
    expect(live.directory.key(PREFIX)?.key.active).toBe(false);
    expect(lines.map((line) => JSON.parse(line).reason)).toContainEqual(
      expect.stringContaining('not as it was saved'),
    );
    await until(async () => lines.some((line) => line.includes('snapshot saved')), 5_000);
    expect(await agreement()).toEqual({ checked: 1, differences: [] });
  });

  test('waits while the snapshots can not be reached, rather than read a long log', async () => {
    const m = machine();
    await m.record('account-9', opened('Other', 9));
    const { position } = await saveAs(m, () => true);
    let away = 2;
    const { begunAt } = await m.start({
      snapshots: {
        ...m.snapshots,
        async load() {
          if (away-- > 0) throw new FuelError('STORE_UNAVAILABLE', 'away');
          return m.snapshots.load();
        },
      },
    });
    expect(begunAt).toEqual([position]);
  });
});

describe('an account that was closed by an event which the process that saved could not read', () => {
  const isSecond = ({ revision }: RecordedEvent): boolean => revision === 1;

  test('is open again where this process can read it, and what that tells is told', async () => {
    const m = machine();
    const second = keyIssued({ prefix: 'klmnopqrst' });
    await m.record('account-7', opened(), keyIssued(), second, onKey('KeySwitchedOff'));
    await saveAs(m, (event) => !isSecond(event));
    const { live, told } = await m.start();
    expect(live.directory.account(7)).toMatchObject({ unreadable: null, revision: 3 });
    expect(live.directory.key(PREFIX)?.key).toMatchObject({ active: false });
    expect(live.directory.key('klmnopqrst')?.entry.id).toBe(7);
    expect(told.map(({ event }) => event.type)).toEqual(['KeySwitchedOff']);
  });

  test('stays closed where this process can not read it either', async () => {
    const m = machine();
    await m.record('account-7', opened(), onKey('KeySwitchedOn'), keyIssued());
    await saveAs(m, () => true);
    const { live } = await m.start();
    expect(live.directory.account(7)?.unreadable?.reason).toMatch(/never issued/);
    expect(live.directory.key(PREFIX)?.entry).toMatchObject({ id: 7, account: undefined });
  });

  test('stays closed where its stream no longer has its events', async () => {
    const m = machine();
    await m.record('account-7', opened(), keyIssued(), onKey('KeySwitchedOff'));
    await m.record('account-9', opened('Other', 9));
    await saveAs(m, (event) => !(event.stream === 'account-7' && isSecond(event)));
    await m.store.erase('account-7');
    const { live } = await m.start();
    expect(live.directory.account(7)).toMatchObject({ account: undefined, unreadable: { reason: 'new' } });
  });
});

describe('saving a snapshot', () => {
  test('is done by one process at a time; another retries after a minute', async () => {
    const m = machine();
    await m.record('account-9', opened('Other', 9));
    await m.recordMany();
    await m.coordination.acquire('directory-snapshot', 'other', 30_000);
    const { lines } = await m.start();
    await m.record('account-9', contacts(0));
    expect(await m.savedAt()).toBeUndefined();
    m.clock.advance(60_000);
    await until(async () => (await m.savedAt()) !== undefined, 5_000);
    expect(lines.join('')).not.toContain('could not be saved');
    await until(async () => (await m.coordination.holder('directory-snapshot')) === undefined, 5_000);
  });

  test('is not done again for what another process has just saved', async () => {
    const m = machine();
    await m.record('account-9', opened('Other', 9));
    const one = await m.start({ holder: 'one' });
    const two = await m.start({ holder: 'two' });
    await m.recordMany();
    const isDone = async () => [one, two].every(({ live }) => live.directory.account(9)?.revision === 1_000);
    await until(isDone, 5_000);
    await until(async () => (await m.savedAt()) !== undefined, 5_000);
    m.clock.advance(60_000); // past the wait of the one that came second
    await m.record('account-9', contacts(0));
    await until(
      async () => [one, two].every(({ live }) => live.directory.account(9)?.revision === 1_001),
      5_000,
    );
    await one.stop();
    await two.stop();
    const saves = [one, two].flatMap(({ lines }) => lines.filter((line) => line.includes('snapshot saved')));
    expect(saves).toHaveLength(1);
  });

  test('of a few events comes ten minutes after the first of them', async () => {
    const m = machine();
    const { live } = await m.start();
    await m.record('account-9', opened('Other', 9));
    await until(async () => live.directory.account(9) !== undefined, 5_000);
    m.clock.advance(599_000);
    await m.record('account-9', contacts(1));
    await until(async () => live.directory.account(9)?.revision === 1, 5_000);
    expect(await m.savedAt()).toBeUndefined();
    m.clock.advance(1_000);
    await until(async () => (await m.savedAt()) !== undefined, 5_000);
  });

  test('that took two seconds is not done again for twenty, however much has changed', async () => {
    const m = machine();
    const slow: DirectorySnapshots = {
      ...m.snapshots,
      async save(header, parts) {
        m.clock.advance(2_000);
        return m.snapshots.save(header, parts);
      },
    };
    const { live, lines } = await m.start({ snapshots: slow });
    const saves = () => lines.filter((line) => line.includes('snapshot saved')).length;
    await m.record('account-9', opened('Other', 9));
    await m.recordMany();
    await until(async () => saves() === 1, 5_000);
    m.clock.advance(19_000);
    await m.recordMany();
    await until(async () => live.directory.account(9)?.revision === 2_000, 5_000);
    expect(saves()).toBe(1);
    m.clock.advance(1_000);
    await m.record('account-9', contacts(0));
    await until(async () => saves() === 2, 5_000);
  });

  test('that fails is logged and disturbs nothing else', async () => {
    const m = machine();
    await m.record('account-9', opened('Other', 9));
    await m.recordMany();
    const failing = { ...m.snapshots, save: () => Promise.reject(new Error('no space')) };
    const { live, lines } = await m.start({ snapshots: failing });
    await until(async () => lines.some((line) => line.includes('could not be saved')), 5_000);
    await m.record('account-9', contacts(0));
    await until(async () => live.directory.account(9)?.revision === 1_001, 5_000);
    expect(await m.coordination.holder('directory-snapshot')).toBeUndefined();
  });
});

describe('a command', () => {
  test('finds the same accounts with the snapshot as without it', async () => {
    const m = machine();
    await m.record('account-7', opened(), keyIssued());
    const { position } = await saveAs(m, () => true);
    await m.record('account-7', onKey('KeySwitchedOff'));
    const begunAt: number[] = [];
    const directory = await loadDirectory(watched(m.store, begunAt), m.snapshots);
    expect(begunAt).toEqual([position]);
    expect(contentOf(directory)).toEqual(contentOf(await loadDirectory(m.store)));
  });

  test('reads the events where the snapshots can not be reached', async () => {
    const m = machine();
    await m.record('account-7', opened());
    const away = () => Promise.reject(new FuelError('STORE_UNAVAILABLE', 'away'));
    const directory = await loadDirectory(m.store, { ...m.snapshots, load: away });
    expect(directory.account(7)?.account?.name).toBe('Harbour Freight');
  });
});
