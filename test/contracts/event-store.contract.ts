import { describe, expect, onTestFinished, test } from 'vitest';
import type { EventStore } from '../../src/event-store/event-store.ts';
import { named, nameOf, record } from '../support/event-store/store-events.ts';
import { eventStoreChangesContract } from './event-store-changes.contract.ts';
import { subscribeContract } from './event-store-subscribe.contract.ts';

export interface EventStoreContractOptions {
  /**
   * True if the log has events that the given store does not show, such as those of other tests, so that it is not
   * empty and grows by itself.
   */
  readonly sharedLog?: boolean;
  /** Makes the engine write its own records into the log. Given if it has such records. */
  readonly noiseOf?: (store: EventStore) => Promise<Noise>;
}

/** Puts a record into the log that a subscription to accounts does not match. */
export type Noise = () => Promise<void>;

/** The contract of every event store. `open` returns an empty one, which the suite closes. */
export function eventStoreContract(
  open: () => Promise<EventStore>,
  { sharedLog = false, noiseOf }: EventStoreContractOptions = {},
): void {
  const opened = async (): Promise<EventStore> => {
    const store = await open();
    onTestFinished(() => store.close());
    return store;
  };

  describe('append', () => {
    test('numbers revisions from 0 and positions upwards', async () => {
      const store = await opened();
      const [first, second] = await store.append([
        { stream: 'account-1', expected: 'none', events: [named('a'), named('b')] },
        { stream: 'account-2', expected: 'none', events: [named('c')] },
      ]);
      expect(first).toMatchObject({ kind: 'appended', revision: 1 });
      expect(second).toMatchObject({ kind: 'appended', revision: 0 });
      const events = (await store.readStreams(['account-1', 'account-2'])).flat();
      expect(events.map(({ stream, revision }) => [stream, revision])).toEqual([
        ['account-1', 0],
        ['account-1', 1],
        ['account-2', 0],
      ]);
      const positions = events.map(({ position }) => position);
      expect(positions).toEqual([...new Set(positions)].sort((a, b) => a - b));
      expect(second).toMatchObject({ position: positions[2] });
    });

    test('lets one of several writers win who expect the same revision', async () => {
      const store = await opened();
      await record(store, 'account-1', 'first');
      const results = await Promise.all(
        Array.from({ length: 8 }, (_, writer) =>
          store.append([{ stream: 'account-1', expected: 0, events: [named(`writer ${writer}`)] }]),
        ),
      );
      const kinds = results.flat().map(({ kind }) => kind);
      expect(kinds.filter((kind) => kind === 'appended')).toHaveLength(1);
      expect(kinds.filter((kind) => kind === 'conflict')).toHaveLength(7);
      expect(await store.readStream('account-1')).toHaveLength(2);
    });

    test('records nothing of an append that conflicts, and the others of the same call', async () => {
      const store = await opened();
      await record(store, 'account-1', 'first');
      const results = await store.append([
        { stream: 'account-2', expected: 'none', events: [named('before')] },
        { stream: 'account-1', expected: 'none', events: [named('x'), named('y')] },
        { stream: 'account-3', expected: 0, events: [named('z')] },
        { stream: 'account-4', expected: 'none', events: [named('after')] },
      ]);
      expect(results.map(({ kind }) => kind)).toEqual(['appended', 'conflict', 'conflict', 'appended']);
      expect(results[1]).toEqual({ kind: 'conflict', actual: 0 });
      expect(results[2]).toEqual({ kind: 'conflict', actual: undefined });
      const streams = await store.readStreams(['account-1', 'account-2', 'account-3', 'account-4']);
      expect(streams.map((events) => events.map(nameOf))).toEqual([['first'], ['before'], [], ['after']]);
    });

    test('sees what an earlier append of the same call recorded', async () => {
      const store = await opened();
      const results = await store.append([
        { stream: 'account-1', expected: 'none', events: [named('a')] },
        { stream: 'account-1', expected: 'none', events: [named('b')] },
        { stream: 'account-1', expected: 0, events: [named('c')] },
      ]);
      expect(results.map(({ kind }) => kind)).toEqual(['appended', 'conflict', 'appended']);
    });

    test.each(['none', 'any', 0] as const)('repeated with expected %s changes nothing', async (expected) => {
      const store = await opened();
      if (expected !== 'none') await record(store, 'account-1', 'first');
      const append = { stream: 'account-1', expected, events: [named('a'), named('b')] };
      const once = await store.append([append]);
      const again = await store.append([append]);
      await record(store, 'account-1', 'later');
      const late = await store.append([append]);
      expect(once[0]?.kind).toBe('appended');
      expect(again).toEqual(once);
      expect(late).toEqual(once);
      const names = (await store.readStream('account-1')).map(nameOf);
      expect(names).toEqual([...(expected === 'none' ? [] : ['first']), 'a', 'b', 'later']);
    });

    test('conflicts when only some of its events are recorded there', async () => {
      const store = await opened();
      const a = named('a');
      await store.append([{ stream: 'account-1', expected: 'none', events: [a] }]);
      for (const expected of ['none', 'any'] as const) {
        const [result] = await store.append([{ stream: 'account-1', expected, events: [a, named('b')] }]);
        expect(result?.kind).toBe('conflict');
      }
      await record(store, 'account-1', 'later');
      for (const expected of ['none', 'any'] as const) {
        const [result] = await store.append([{ stream: 'account-1', expected, events: [a, named('b')] }]);
        expect(result).toEqual({ kind: 'conflict', actual: 1 });
      }
      expect(await store.readStream('account-1')).toHaveLength(2);
    });

    test('recognises repeated events only in the stream that has them', async () => {
      const store = await opened();
      const append = { expected: 'any', events: [named('a')] } as const;
      await record(store, 'account-2', 'first');
      await store.append([{ stream: 'account-1', ...append }]);
      expect(await store.append([{ stream: 'account-2', ...append }])).toMatchObject([
        { kind: 'appended', revision: 1 },
      ]);
      expect(await store.readStream('account-2')).toHaveLength(2);
    });
  });

  describe('reading', () => {
    test('returns what was appended', async () => {
      const store = await opened();
      const event = named('Δ "quoted" \u{1F69A}');
      await store.append([{ stream: 'account-1', expected: 'none', events: [event] }]);
      const [read] = await store.readStream('account-1');
      expect(read).toMatchObject({ stream: 'account-1', revision: 0, ...event });
      const end = await store.head();
      if (sharedLog) expect(read?.position).toBeLessThanOrEqual(end);
      else expect(read?.position).toBe(end);
    });

    test('starts a stream at the given revision', async () => {
      const store = await opened();
      await record(store, 'account-1', 'a', 'b', 'c');
      expect((await store.readStream('account-1', { fromRevision: 1 })).map(nameOf)).toEqual(['b', 'c']);
      expect((await store.readStream('account-1', { fromRevision: 1, limit: 1 })).map(nameOf)).toEqual(['b']);
      expect(await store.readStream('account-1', { fromRevision: 3 })).toEqual([]);
      expect(await store.readStream('account-9')).toEqual([]);
    });

    test('returns the last event of a stream, and none of one that does not exist or was erased', async () => {
      const store = await opened();
      await record(store, 'account-1', 'a', 'b');
      await record(store, 'account-2', 'c');
      expect(await store.readLast('account-1')).toEqual((await store.readStream('account-1')).at(-1));
      expect(await store.readLast('account-9')).toBeUndefined();
      await store.erase('account-2');
      expect(await store.readLast('account-2')).toBeUndefined();
    });

    test('returns many streams in the order of the names', async () => {
      const store = await opened();
      await record(store, 'account-1', 'a');
      await record(store, 'account-2', 'b', 'c');
      const streams = await store.readStreams(['account-2', 'account-9', 'account-1']);
      expect(streams.map((events) => events.map(nameOf))).toEqual([['b', 'c'], [], ['a']]);
    });

    test('returns results that can be changed without changing the store', async () => {
      const store = await opened();
      const event = named('a');
      const append = store.append([{ stream: 'account-1', expected: 'none', events: [event] }]);
      (event.data as { name: string }).name = 'changed after the call';
      await append;
      const [read] = await store.readStream('account-1');
      (read?.data as { name: string }).name = 'changed by the reader';
      expect((await store.readStream('account-1')).map(nameOf)).toEqual(['a']);
    });

    test.runIf(!sharedLog)('returns 0 as the end of an empty store', async () => {
      expect(await (await opened()).head()).toBe(0);
    });

    test('returns the position of the last event as the end', async () => {
      const store = await opened();
      const before = await store.head();
      const position = await record(store, 'account-1', 'a');
      expect(position).toBeGreaterThan(before);
      expect(await store.head()).toBeGreaterThanOrEqual(position);
    });
  });

  subscribeContract(opened, { sharedLog, ...(noiseOf === undefined ? {} : { noiseOf }) });

  eventStoreChangesContract(opened);
  test('is read backwards from its end or from a position, in steps that leave nothing out', async () => {
    const store = await opened();
    await record(store, 'account-1', 'a', 'b');
    const middle = await record(store, 'transaction-1', 'c');
    await record(store, 'account-2', 'd');
    await record(store, 'transaction-2', 'e');
    const backwards = async (prefixes: readonly string[], limit: number, from?: number) => {
      const names: string[] = [];
      for (let before = from; ; ) {
        const batch = await store.readBackwards({ prefixes, limit, before });
        expect(batch.events.length).toBeLessThanOrEqual(limit);
        for (const event of batch.events) names.push(nameOf(event));
        if (batch.atStart) return names.join('');
        expect(batch.position).toBeLessThan(before ?? Infinity);
        before = batch.position;
      }
    };
    for (const limit of [1, 2, 100]) {
      expect(await backwards([], limit)).toBe('edcba');
      expect(await backwards(['account-'], limit)).toBe('dba');
      expect(await backwards(['account-2', 'transaction-'], limit)).toBe('edc');
      expect(await backwards([], limit, middle)).toBe('ba');
      expect(await backwards(['transaction-'], limit, middle)).toBe('');
    }
  });

  test('gives the event loop a turn with each step backwards, so that others go on and an abort is seen', async () => {
    const store = await opened();
    await record(store, 'account-1', 'a');
    let turned = false;
    setImmediate(() => {
      turned = true;
    });
    await store.readBackwards({ prefixes: [], limit: 1 });
    expect(turned).toBe(true);
  });

  test('rejects every call after it was closed', async () => {
    const store = await open();
    const signal = new AbortController().signal;
    const waiting = store.subscribe({ prefixes: [], after: 0, signal })[Symbol.asyncIterator]();
    await waiting.next();
    const next = waiting.next();
    const closed = { code: 'STORE_CLOSED' };
    const ended = expect(next).rejects.toMatchObject(closed);
    await store.close();
    await ended;
    const append = { stream: 'account-1', expected: 'any', events: [named('a')] } as const;
    await expect(store.append([append])).rejects.toMatchObject(closed);
    await expect(store.readStream('account-1')).rejects.toMatchObject(closed);
    await expect(store.readStreams(['account-1'])).rejects.toMatchObject(closed);
    await expect(store.isErased('account-1')).rejects.toMatchObject(closed);
    await expect(store.readBackwards({ prefixes: [], limit: 1 })).rejects.toMatchObject(closed);
    await expect(store.head()).rejects.toMatchObject(closed);
    await expect(store.erase('account-1')).rejects.toMatchObject(closed);
    const late = store.subscribe({ prefixes: [], after: 0, signal })[Symbol.asyncIterator]();
    await expect(late.next()).rejects.toMatchObject(closed);
    await store.close();
  });
}
