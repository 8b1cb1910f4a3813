import { describe, expect, test } from 'vitest';
import { firstPosition, occurredAtMs } from '../../src/event-store/codec.ts';
import type { EventStore } from '../../src/event-store/event-store.ts';
import type { RecordedEvent } from '../../src/event-store/recorded-event.ts';
import { named, nameOf, record } from '../support/event-store/store-events.ts';

/** The part of the contract of an event store in which events are replaced and erased. */
export function eventStoreChangesContract(opened: () => Promise<EventStore>): void {
  describe('rewrite', () => {
    const renamed = (events: readonly RecordedEvent[]): RecordedEvent[] =>
      events.map((event) => ({ ...event, data: { name: `${nameOf(event)}'` } }));

    test('puts other data in the place of what a stream holds, and of nothing else', async () => {
      const store = await opened();
      await record(store, 'transaction-1', 'a', 'b');
      await record(store, 'transaction-2', 'c');
      const before = await store.readStream('transaction-1');
      expect(await store.rewrite(renamed(before))).toBe(true);
      const after = await store.readStream('transaction-1');
      expect(after.map(nameOf)).toEqual(["a'", "b'"]);
      expect((await store.readStreams(['transaction-1', 'transaction-2'])).flat().map(nameOf)).toEqual([
        "a'",
        "b'",
        'c',
      ]);
      expect(after.map(({ type }) => type)).toEqual(before.map(({ type }) => type));
      expect(after.map(firstPosition)).toEqual(before.map(({ position }) => position));
      expect(after.map(occurredAtMs)).toEqual(before.map(occurredAtMs));
      for (const [at, { metadata }] of before.entries())
        expect(after[at]?.metadata).toMatchObject(metadata as object);
    });

    test('can be repeated, and the stream takes further events behind it', async () => {
      const store = await opened();
      await record(store, 'transaction-1', 'a');
      const before = await store.readStream('transaction-1');
      await store.rewrite(renamed(before));
      const once = await store.readStream('transaction-1');
      expect(await store.rewrite(renamed(once))).toBe(true);
      const twice = await store.readStream('transaction-1');
      expect(twice.map(nameOf)).toEqual(["a''"]);
      expect(twice.map(firstPosition)).toEqual(before.map(({ position }) => position));
      const [{ revision = 0 } = {}] = twice;
      const next = { stream: 'transaction-1', expected: revision, events: [named('b')] };
      expect(await store.append([next])).toMatchObject([{ kind: 'appended', revision: revision + 1 }]);
      expect((await store.readStream('transaction-1')).map(nameOf)).toEqual(["a''", 'b']);
      const again = { stream: 'transaction-1', expected: 'none', events: [named('a')] } as const;
      expect(await store.append([again])).toEqual([{ kind: 'conflict', actual: revision + 1 }]);
    });

    test('changes nothing where the stream has grown, or was erased', async () => {
      const store = await opened();
      await record(store, 'transaction-1', 'a');
      const before = await store.readStream('transaction-1');
      await record(store, 'transaction-1', 'b');
      expect(await store.rewrite(renamed(before))).toBe(false);
      expect((await store.readStream('transaction-1')).map(nameOf)).toEqual(['a', 'b']);
      const grown = await store.readStream('transaction-1');
      await store.erase('transaction-1');
      expect(await store.rewrite(renamed(grown))).toBe(false);
      expect(await store.readStream('transaction-1')).toEqual([]);
    });
  });

  describe('erase', () => {
    test('removes the events, and the stream takes none again', async () => {
      const store = await opened();
      await record(store, 'transaction-1', 'a', 'b');
      await record(store, 'transaction-2', 'c');
      await store.erase('transaction-1');
      expect(await store.readStream('transaction-1')).toEqual([]);
      expect(await store.isErased('transaction-1')).toBe(true);
      expect(await store.isErased('transaction-2')).toBe(false);
      for (const expected of ['none', 'any', 1] as const) {
        const append = { stream: 'transaction-1', expected, events: [named('again')] };
        expect(await store.append([append])).toEqual([{ kind: 'erased' }]);
      }
      expect((await store.readStream('transaction-2')).map(nameOf)).toEqual(['c']);
    });

    test('also marks a stream that does not exist, and can be repeated', async () => {
      const store = await opened();
      await store.erase('transaction-1');
      await store.erase('transaction-1');
      const append = { stream: 'transaction-1', expected: 'none', events: [named('a')] } as const;
      expect(await store.append([append])).toEqual([{ kind: 'erased' }]);
    });

    test('never moves the end of the log backwards', async () => {
      const store = await opened();
      const end = await record(store, 'transaction-1', 'a');
      await store.erase('transaction-1');
      expect(await store.head()).toBeGreaterThanOrEqual(end);
      expect(await record(store, 'transaction-2', 'b')).toBeGreaterThan(end);
    });
  });
}
