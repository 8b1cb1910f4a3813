import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  openSqliteEventStore,
  type SqliteEventStore,
} from '../../src/engines/sqlite/event-store/event-store.ts';
import type { EventStore } from '../../src/event-store/event-store.ts';
import { newEvent } from '../../src/event-store/new-event.ts';
import { Unreadable } from '../../src/event-store/recorded-event.ts';
import {
  anchorOf,
  assertCheckpoint,
  continuesAfter,
  storeIdentity,
} from '../../src/event-store/store-identity.ts';
import { record } from '../support/event-store/store-events.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const clock = new FakeClock();

function openAt(path: string): SqliteEventStore {
  const store = openSqliteEventStore({ path, clock });
  onTestFinished(() => store.close());
  return store;
}

describe('storeIdentity', () => {
  test('gives a new store an id once, by an event', async () => {
    const store = openAt(join(temporaryFolder(), 'events.db'));
    const storeId = await storeIdentity(store, clock);
    expect(storeId).toMatch(/^[0-9a-f-]{36}$/);
    expect(await storeIdentity(store, clock)).toBe(storeId);
    expect(await store.readStream('operations')).toMatchObject([
      {
        type: 'StoreNamed',
        data: { store_id: storeId },
        metadata: { actor: 'system', command: 'store open', schema_version: 1 },
      },
    ]);
  });

  test('is the same for all processes that open the store at once', async () => {
    const path = join(temporaryFolder(), 'events.db');
    const stores = [openAt(path), openAt(path), openAt(path)];
    const ids = await Promise.all(stores.map((store) => storeIdentity(store, clock)));
    expect(new Set(ids).size).toBe(1);
    expect(await stores[0]?.readStream('operations')).toHaveLength(1);
  });

  test('differs between two stores', async () => {
    const [one, other] = [1, 2].map(() => openAt(join(temporaryFolder(), 'events.db')));
    if (one === undefined || other === undefined) throw new Error('two stores were opened');
    expect(await storeIdentity(one, clock)).not.toBe(await storeIdentity(other, clock));
  });

  test('is refused where the stream begins with another event', async () => {
    const store = openAt(join(temporaryFolder(), 'events.db'));
    await record(store, 'operations', 'not a name');
    await expect(storeIdentity(store, clock)).rejects.toMatchObject({ code: 'STORE_MISMATCH' });
  });
});

describe('assertCheckpoint', () => {
  const ofTwoEvents = async () => {
    const store = openAt(join(temporaryFolder(), 'events.db'));
    const end = await record(store, 'account-1', 'a', 'b');
    return { store, end, storeId: 'here' };
  };

  test('accepts a checkpoint of this store up to its end', async () => {
    const { end, ...here } = await ofTwoEvents();
    await assertCheckpoint({ storeId: 'here', position: end }, here, 'transactions');
  });

  test.each([
    ['of another store', { storeId: 'elsewhere', beyond: 0 }],
    ['ahead of the end', { storeId: 'here', beyond: 1 }],
  ])('refuses a checkpoint %s and names the way out', async (_, { storeId, beyond }) => {
    const { end, ...here } = await ofTwoEvents();
    await expect(
      assertCheckpoint({ storeId, position: end + beyond }, here, 'transactions'),
    ).rejects.toMatchObject({
      code: 'STORE_MISMATCH',
      message: expect.stringContaining('fuel projection rebuild transactions'),
    });
  });
});

describe('an anchor', () => {
  /** A log of account-1 with events a and b, and a projection of it up to b. */
  async function made() {
    const store = openAt(join(temporaryFolder(), 'events.db'));
    const position = await record(store, 'account-1', 'a', 'b');
    const [a, b] = await store.readStream('account-1');
    if (a === undefined || b === undefined) throw new Error('two events were recorded');
    const here = { storeId: 'here', position, anchor: anchorOf([a, b]) };
    const fits = (inStore: EventStore = store) =>
      assertCheckpoint(here, { store: inStore, storeId: 'here' }, 'transactions').then(
        () => true,
        ({ code }: { code: string }) => code,
      );
    return { store, a, b, fits };
  }
  const reading = (found: object[]): EventStore =>
    ({ readStream: async () => found, isErased: async () => false, head: async () => Infinity }) as never;

  test('is found in its own log, also after it was redacted or erased', async () => {
    const { store, a, b, fits } = await made();
    await record(store, 'account-1', 'c');
    expect(await fits()).toBe(true);
    const [, , c] = await store.readStream('account-1');
    if (c === undefined) throw new Error('c was recorded');
    expect(await store.rewrite([a, { ...b, data: { name: 'redacted' } }, c])).toBe(true);
    expect((await store.readStream('account-1'))[1]?.id).not.toBe(b.id);
    expect(await fits()).toBe(true);
    expect(await fits(reading([{ ...b, revision: 3, position: 99 }]))).toBe(true); // it was appended again
    await store.erase('account-1');
    expect(await fits()).toBe(true);
  });

  test.each<[string, (b: object) => object[]]>([
    ['was recorded at another time', (b) => [{ ...b, recordedAtMs: 1 }]],
    ['is elsewhere in the log', (b) => [{ ...b, position: 1 }]],
    ['is missing', () => []],
  ])('does not fit a log in which the event %s', async (_, found) => {
    const { b, fits } = await made();
    expect(await fits(reading(found(b)))).toBe('STORE_MISMATCH');
  });

  test('that is damaged says nothing: what was made from it may be all that is left', async () => {
    const { b, fits } = await made();
    const data = new Unreadable('damaged', { isDamage: true });
    expect(await fits(reading([{ ...b, data, recordedAtMs: 0 }]))).toBe(true);
  });

  test('is the newest event that is whole, if there is one', async () => {
    const { a, b } = await made();
    const damaged = { ...b, data: new Unreadable('damaged', { isDamage: true }), recordedAtMs: 0 };
    expect(anchorOf([a, b])).toMatchObject({ revision: 1, position: b.position });
    expect(anchorOf([a, damaged])).toMatchObject({ revision: 0, position: a.position });
    expect(anchorOf([damaged])).toBeUndefined();
  });

  test('is where reading continues, since the log may be another one behind it', () => {
    const anchor = { position: 4, stream: 'account-1', revision: 0, recordedAtMs: 0 };
    expect(continuesAfter({ position: 9, anchor })).toBe(4);
    expect(continuesAfter({ position: 3, anchor })).toBe(3);
    expect(continuesAfter({ position: 9 })).toBe(9);
  });
});

describe('newEvent', () => {
  const named = { type: 'StoreNamed', data: { store_id: 'x' } } as const;
  const author = { actor: 'sam', command: 'store open' };

  test('records who, when, by which command and in which version', () => {
    expect(newEvent(named, author, Date.UTC(2026, 8, 3))).toMatchObject({
      ...named,
      metadata: { schema_version: 1, at: '2026-09-03T00:00:00.000Z', ...author },
    });
  });

  test('starts a new correlation, which also is its cause, where none is given', () => {
    const { id, metadata } = newEvent(named, author, 0);
    expect(metadata.causation_id).toBe(metadata.correlation_id);
    const other = newEvent(named, author, 0);
    expect(other.id).not.toBe(id);
    expect(other.metadata.correlation_id).not.toBe(metadata.correlation_id);
  });

  test('keeps the correlation and causation that it is given', () => {
    const { metadata } = newEvent(named, { ...author, correlationId: 'c1', causationId: 'c2' }, 0);
    expect(metadata).toMatchObject({ correlation_id: 'c1', causation_id: 'c2' });
    const correlated = newEvent(named, { ...author, correlationId: 'c1' }, 0);
    expect(correlated.metadata).toMatchObject({ correlation_id: 'c1', causation_id: 'c1' });
  });
});
