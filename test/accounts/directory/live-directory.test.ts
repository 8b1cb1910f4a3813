import { pino } from 'pino';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readAccountEvent } from '../../../src/accounts/directory/apply-to-directory.ts';
import { Directory } from '../../../src/accounts/directory/fold/directory.ts';
import { LiveDirectory } from '../../../src/accounts/directory/live-directory.ts';
import { loadDirectory } from '../../../src/accounts/directory/load-directory.ts';
import { rowOf } from '../../../src/accounts/directory/rows/packed-row.ts';
import type { StoredDirectory } from '../../../src/accounts/directory/rows/stored-directory.ts';
import { FuelError } from '../../../src/base/errors.ts';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import type { EventStore, SubscribeOptions } from '../../../src/event-store/event-store.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import type { RecordedEvent } from '../../../src/event-store/recorded-event.ts';
import { continuesAfter } from '../../../src/event-store/store-identity.ts';
import { verifyDirectory } from '../../../src/operator/verify/verify-directory.ts';
import { keyIssued, onKey, opened, PREFIX, webhookSet } from '../../support/accounts/account-samples.ts';
import { contentOf } from '../../support/accounts/directory-content.ts';
import { openStored, saveAll, saveHead } from '../../support/accounts/stored-directory.ts';
import { MemoryLog, openMemoryEventStore } from '../../support/engines/memory-log.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { until } from '../../support/waiting.ts';

const AUTHOR = { actor: 'test', command: 'test' };
const contacts = (n: number): AccountEvent => ({
  type: 'AccountContactsSet',
  data: { account_id: 9, emails: [`${n}@example.com`] },
});

const anchor = (position: number) => ({ position, stream: 'account-9', revision: 0, recordedAtMs: 1 });

/** A machine with its stores, on which processes are started. */
function machine() {
  const clock = new FakeClock();
  const store = openMemoryEventStore(new MemoryLog(), clock);
  const { rows, stored } = openStored();
  onTestFinished(async () => {
    for (const opened of [stored, store]) await opened.close();
  });

  async function record(stream: string, ...events: readonly AccountEvent[]): Promise<number> {
    const news = events.map((event) => newEvent(event, AUTHOR, clock.now()));
    const [result] = await store.append([{ stream, expected: 'any', events: news }]);
    if (result?.kind !== 'appended') throw new Error('not appended');
    return result.position;
  }

  /** Enough events to be saved, on account 9. */
  async function recordMany(): Promise<void> {
    await record('account-9', ...Array.from({ length: 1_000 }, (_, n) => contacts(n)));
  }

  /** Starts a process that follows the account streams and saves, and waits until it has caught up. */
  async function start(on: Partial<Pick<StoredDirectory, 'load' | 'save'>> = {}) {
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
      stored: storedWith(stored, on),
      onEvent: (event, place) => void told.push({ event, ...place }),
    });
    const running = live.run();
    const stop = async (): Promise<void> => {
      stopping.abort();
      await running;
    };
    onTestFinished(stop);
    await until(() => live.isCaughtUp);
    return { live, told, lines, begunAt, stop };
  }

  const savedAt = async () => {
    const checkpoint = await rows.checkpoint();
    return checkpoint && continuesAfter(checkpoint);
  };
  return { store, rows, stored, clock, record, recordMany, start, savedAt };
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

/** The stored directory with some steps replaced. */
function storedWith(stored: StoredDirectory, steps: Partial<Pick<StoredDirectory, 'load' | 'save'>>) {
  return {
    load: stored.load.bind(stored),
    save: stored.save.bind(stored),
    owners: stored.owners.bind(stored),
    close: () => stored.close(),
    ...steps,
  } as StoredDirectory;
}

/** Saves what a process would save that could read only some of the events. */
async function saveAs(m: Machine, couldRead: (event: RecordedEvent) => boolean): Promise<number> {
  const directory = new Directory();
  const events = (await m.store.readStreams(['account-7', 'account-9'])).flat();
  events.sort((a, b) => a.position - b.position);
  for (const recorded of events) {
    const decoded = couldRead(recorded)
      ? readAccountEvent(recorded)
      : ({ ok: false, reason: 'new' } as const);
    directory.apply({ ...recorded, decoded });
  }
  return saveAll(m, directory);
}

describe('a process that starts', () => {
  test('starts from what another has saved, and reads only what comes after it', async () => {
    const m = machine();
    await m.record('account-7', opened(), keyIssued(), webhookSet());
    const offAt = await m.record('account-7', onKey('KeySwitchedOff'));
    await m.record('account-7', onKey('KeySwitchedOn'));
    const enabledAt = await m.record('account-7', onKey('WebhookEnabled'));
    await m.record('account-9', opened('Other', 9));
    await m.recordMany();
    const first = await m.start();
    await until(async () => (await m.savedAt()) !== undefined);
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
    ['of an older version', /has version -1/, (m) => saveHead(m.rows, { version: -1 })],
    ['of another event store', /event store elsewhere/, (m) => saveHead(m.rows, { storeId: 'elsewhere' })],
    ['from behind the end of the log', /the event store ends at/, (m) => saveHead(m.rows, { position: 1e9 })],
    [
      'whose accounts are from behind it',
      /the event store ends at/,
      (m) => saveHead(m.rows, { anchor: anchor(1e9) }),
    ],
    [
      'of which something was changed',
      /not as it was saved/,
      async (m) => {
        const checkpoint = await m.rows.checkpoint();
        if (checkpoint !== undefined) await m.rows.save([], { ...checkpoint, mac: 'x' }, checkpoint.mac);
      },
    ],
    [
      'of a log that has gone another way since',
      /event 0 of account-9 is another one/,
      (m) => saveHead(m.rows, { anchor: anchor(1) }),
    ],
  ])(
    'does not use a stored directory %s: it says why, reads every event and replaces it',
    async (_, reason, spoil) => {
      const m = machine();
      await m.record('account-9', opened('Other', 9));
      await m.recordMany();
      await saveAs(m, () => true);
      await spoil(m);
      const { live, begunAt, lines } = await m.start();
      expect(begunAt).toEqual([0]);
      expect(live.directory.account(9)?.revision).toBe(1_000);
      expect(lines.map((line) => JSON.parse(line).reason)).toContainEqual(expect.stringMatching(reason));
      await until(() => lines.some((line) => line.includes('directory saved')));
      const { begunAt: next } = await m.start();
      expect(next).toEqual([await m.savedAt()]);
    },
  );

  test('misses nothing where the log was replaced by an older copy, which has grown past where it was saved', async () => {
    const m = machine();
    await m.record('account-7', opened(), keyIssued());
    const anchorAt = await saveAs(m, () => true);
    await saveHead(m.rows, { position: anchorAt + 2 }); // as after two other events, which are lost
    await m.record('account-7', onKey('KeySwitchedOff'));
    await m.record('account-9', opened('Other', 9));
    const { live, begunAt } = await m.start();
    expect(begunAt).toEqual([anchorAt]);
    expect(live.directory.key(PREFIX)?.key.active).toBe(false);
  });

  test('does not switch a key on again where its older row was put back, and soon replaces that', async () => {
    const m = machine();
    await m.record('account-7', opened(), keyIssued());
    await saveAs(m, () => true);
    const older = [...(await loadDirectory(m.store)).states()].map(rowOf);
    await m.record('account-7', onKey('KeySwitchedOff'));
    await saveAs(m, () => true);
    const checkpoint = await m.rows.checkpoint();
    if (checkpoint === undefined) throw new Error('nothing was saved');
    await m.rows.save(older, checkpoint, checkpoint.mac);
    const agreement = () => verifyDirectory(m);
    expect((await agreement()).differences).toEqual([expect.stringContaining('not as it was saved')]);
    const { live, lines } = await m.start();
    expect(live.directory.key(PREFIX)?.key.active).toBe(false);
    await until(() => lines.some((line) => line.includes('directory saved')));
    expect(await agreement()).toEqual({ checked: 1, differences: [] });
    m.clock.advance(30_000);
    await m.record('account-7', onKey('KeySwitchedOn'));
    await until(() => live.directory.key(PREFIX)?.key.active === true);
    expect((await m.rows.checkpoint())?.position).toBe(checkpoint.position); // from now on as usual, a minute later
  });

  test('waits while the stored directory cannot be reached, rather than read a long log', async () => {
    const m = machine();
    await m.record('account-9', opened('Other', 9));
    const position = await saveAs(m, () => true);
    let away = 2;
    const { begunAt } = await m.start({
      async load(...all) {
        if (away-- > 0) throw new FuelError('STORE_UNAVAILABLE', 'away');
        return m.stored.load(...all);
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

  test('stays closed where this process cannot read it either', async () => {
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

describe('saving the directory', () => {
  test('of two processes at once is done by one; the other one retries after a minute', async () => {
    const m = machine();
    await m.record('account-9', opened('Other', 9));
    let tries = 0;
    const { lines } = await m.start({
      save: async (...all) => (tries++ === 0 ? false : m.stored.save(...all)),
    });
    await m.recordMany();
    await until(() => tries === 1);
    m.clock.advance(60_000);
    await until(async () => (await m.savedAt()) !== undefined);
    expect(lines.join('')).not.toContain('could not be saved');
  });

  test('of a few events comes a minute after the first of them', async () => {
    const m = machine();
    const { live } = await m.start();
    await m.record('account-9', opened('Other', 9));
    await until(() => live.directory.account(9) !== undefined);
    m.clock.advance(59_000);
    await m.record('account-9', contacts(1));
    await until(() => live.directory.account(9)?.revision === 1);
    expect(await m.savedAt()).toBeUndefined();
    m.clock.advance(1_000);
    await until(async () => (await m.savedAt()) !== undefined);
  });

  test('that took two seconds is not done again for twenty, however much has changed', async () => {
    const m = machine();
    const { live, lines } = await m.start({
      async save(...all) {
        m.clock.advance(2_000);
        return m.stored.save(...all);
      },
    });
    const saves = () => lines.filter((line) => line.includes('directory saved')).length;
    await m.record('account-9', opened('Other', 9));
    await m.recordMany();
    await until(() => saves() === 1);
    m.clock.advance(19_000);
    await m.recordMany();
    await until(() => live.directory.account(9)?.revision === 2_000);
    expect(saves()).toBe(1);
    m.clock.advance(1_000);
    await m.record('account-9', contacts(0));
    await until(() => saves() === 2);
  });

  test('that fails is logged and disturbs nothing else; it is retried a minute later', async () => {
    const m = machine();
    await m.record('account-9', opened('Other', 9));
    await m.recordMany();
    let tries = 0;
    const { live, lines } = await m.start({
      save: (...all) => (tries++ === 0 ? Promise.reject(new Error('no space')) : m.stored.save(...all)),
    });
    await until(() => lines.some((line) => line.includes('could not be saved')));
    await m.record('account-9', contacts(0));
    await until(() => live.directory.account(9)?.revision === 1_001);
    expect(tries).toBe(1);
    m.clock.advance(60_000);
    await until(async () => (await m.savedAt()) !== undefined);
  });

  test('that ends with the process is no failure', async () => {
    const m = machine();
    const begun = Promise.withResolvers<void>();
    const { lines, stop } = await m.start({
      save: (_, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason));
          begun.resolve();
        }),
    });
    await m.record('account-9', opened('Other', 9));
    await m.recordMany();
    await begun.promise;
    await stop();
    expect(lines.join('')).not.toContain('could not be saved');
  });

  test('counts what is applied while it goes on for the next one', async () => {
    const m = machine();
    let tries = 0;
    const { live } = await m.start({
      async save(...all) {
        if (tries++ === 0) await m.recordMany();
        return m.stored.save(...all);
      },
    });
    await m.record('account-9', opened('Other', 9));
    await m.recordMany();
    await until(() => live.directory.account(9)?.revision === 2_000);
    await until(() => tries === 2);
  });
});

describe('a command', () => {
  test('finds the same accounts with the stored directory as without it', async () => {
    const m = machine();
    await m.record('account-7', opened(), keyIssued());
    const position = await saveAs(m, () => true);
    await m.record('account-7', onKey('KeySwitchedOff'));
    const begunAt: number[] = [];
    const directory = await loadDirectory(watched(m.store, begunAt), m.stored);
    expect(begunAt).toEqual([position]);
    expect(contentOf(directory)).toEqual(contentOf(await loadDirectory(m.store)));
  });

  test('reads the events where the stored directory cannot be reached', async () => {
    const m = machine();
    await m.record('account-7', opened());
    const away = () => Promise.reject(new FuelError('STORE_UNAVAILABLE', 'away'));
    const directory = await loadDirectory(m.store, storedWith(m.stored, { load: away }));
    expect(directory.account(7)?.account?.name).toBe('Harbour Freight');
  });
});
