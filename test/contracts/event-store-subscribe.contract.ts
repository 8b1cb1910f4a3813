import { randomUUID } from 'node:crypto';
import { getEventListeners } from 'node:events';
import { describe, expect, onTestFinished, test } from 'vitest';
import { eventBytes, MAX_BATCH_BYTES } from '../../src/event-store/batch-bytes.ts';
import type { EventStore, SubscribeOptions, SubscriptionBatch } from '../../src/event-store/event-store.ts';
import { JsonText, metadataOf } from '../../src/event-store/new-event.ts';
import { storedText } from '../../src/event-store/recorded-event.ts';
import { collect, record } from '../support/event-store/store-events.ts';
import type { EventStoreContractOptions } from './event-store.contract.ts';

const bytesOf = (events: SubscriptionBatch['events']): number =>
  events.reduce((sum, event) => sum + eventBytes(event), 0);

/** The part of the event store's contract about subscriptions. `opened` returns an empty store. */
export function subscribeContract(
  opened: () => Promise<EventStore>,
  { sharedLog = false, noiseOf }: EventStoreContractOptions,
): void {
  describe('subscribe', () => {
    const subscribed = (
      store: EventStore,
      options: Partial<SubscribeOptions> = {},
    ): AsyncIterator<SubscriptionBatch> => {
      const end = new AbortController();
      onTestFinished(() => end.abort());
      const all = { prefixes: [], after: 0, signal: end.signal, ...options };
      return store.subscribe(all)[Symbol.asyncIterator]();
    };

    test('yields everything in order, then what is recorded later', async () => {
      const store = await opened();
      await record(store, 'account-1', 'a', 'b');
      const batches = subscribed(store);
      const before = await collect(batches, (names, last) => names.length === 2 && last.caughtUp);
      expect(before.names).toEqual(['a', 'b']);
      await record(store, 'transaction-1', 'c');
      expect((await collect(batches, (names) => names.length === 1)).names).toEqual(['c']);
    });

    test('yields the bytes that were recorded to who parses them itself', async () => {
      const store = await opened();
      const data = new JsonText(Buffer.from('{"b": 1.0,\n "a": "\\u00e9é"}'));
      const metadata = metadataOf({ actor: 'test', command: 'test' }, 0);
      const event = { id: randomUUID(), type: 'AccountOpened', data, metadata };
      await store.append([{ stream: 'account-1', expected: 'none', events: [event] }]);
      const { batches } = await collect(subscribed(store, { unparsed: true }), (names) => names.length === 1);
      const found = batches.flatMap(({ events }) => events)[0];
      const texts = [found?.data, found?.metadata].map(
        (part) => part instanceof Uint8Array && storedText(part),
      );
      expect(texts).toEqual([data.text, JSON.stringify(metadata)]);
    });

    test('leaves nothing on its signal when its reader leaves it', async () => {
      const store = await opened();
      await record(store, 'account-1', 'a');
      const { signal } = new AbortController();
      for await (const { caughtUp } of store.subscribe({ prefixes: [], after: 0, signal }))
        if (caughtUp) break;
      expect(getEventListeners(signal, 'abort')).toEqual([]);
    });

    test('resumes after any of its positions without a gap or a repetition', async () => {
      const store = await opened();
      const expected = Array.from({ length: 7 }, (_, index) => `e${index}`);
      for (const name of expected) await record(store, `account-${name}`, name);
      const all = await collect(subscribed(store, { batchSize: 2 }), (names) => names.length === 7);
      expect(all.names).toEqual(expected);
      expect(all.batches.every(({ events }) => events.length <= 2)).toBe(true);
      let seen = 0;
      for (const { events, position } of all.batches.slice(0, -1)) {
        seen += events.length;
        const rest = await collect(
          subscribed(store, { after: position }),
          (names) => names.length === 7 - seen,
        );
        expect(rest.names).toEqual(expected.slice(seen));
      }
    });

    test('resumes after each position that it ever reported, whatever records are between the events', async () => {
      const store = await opened();
      const engineNoise = (await noiseOf?.(store)) ?? (async () => undefined);
      const noises = [
        engineNoise,
        () => record(store, 'transaction-1', 'x'),
        () => store.erase(`transaction-${crypto.randomUUID()}`),
        engineNoise,
        engineNoise,
      ];
      const expected = noises.map((_, index) => `e${index}`);
      const prefixes = ['account-'];
      const following = collect(subscribed(store, { prefixes }), (names) => names.includes('end'));
      for (const [index, noise] of noises.entries()) {
        await noise();
        await record(store, `account-${index}`, `e${index}`);
        await noise();
      }
      await record(store, 'account-end', 'end');
      const reported = new Map<number, number>([[0, 0]]);
      let seen = 0;
      for (const { events, position, checkpoint } of (await following).batches) {
        seen += events.length;
        reported.set(checkpoint, seen).set(position, seen);
        expect(checkpoint).toBeLessThanOrEqual(position);
        expect(checkpoint).toBeLessThanOrEqual(await store.head());
      }
      for (const [after, before] of reported) {
        const rest = [...expected, 'end'].slice(before);
        const resumed = collect(subscribed(store, { prefixes, after }), (_, last) => last.caughtUp);
        expect({ after, names: (await resumed).names }).toEqual({ after, names: rest });
      }
    });

    test('resumes after each position that it reported behind many events at once', async () => {
      const store = await opened();
      const prefixes = ['account-'];
      const batches = subscribed(store, { prefixes });
      await collect(batches, (_, last) => last.caughtUp);
      const reported: number[] = [];
      for (const name of ['a', 'b']) {
        const names = Array.from({ length: 100 }, (_, index) => `x${index}`);
        const end = await record(store, 'transaction-1', ...names);
        const behind = await collect(batches, (_, last) => last.position >= end);
        const idle = await batches.next();
        reported.push(...behind.batches.map(({ position }) => position), idle.value.position);
        await record(store, `account-${name}`, name);
        expect((await collect(batches, (all) => all.length > 0)).names).toEqual([name]);
        // A server may report each event. The last reports are the ends of the log.
        for (const after of reported.splice(0).slice(-8)) {
          const resumed = collect(subscribed(store, { prefixes, after }), (_, last) => last.caughtUp);
          expect({ after, names: (await resumed).names }).toEqual({ after, names: [name] });
        }
      }
    });

    test('loses nothing that is recorded while it reads', async () => {
      const store = await opened();
      const reading = collect(subscribed(store, { batchSize: 3 }), (names) => names.length === 60);
      for (let call = 0; call < 20; call++) await record(store, `account-${call}`, 'a', 'b', 'c');
      expect((await reading).names).toEqual(Array.from({ length: 20 }, () => ['a', 'b', 'c']).flat());
    });

    test('yields only events of streams with one of its prefixes', async () => {
      const store = await opened();
      await record(store, 'account-1', 'account');
      await record(store, 'transaction-1', 'transaction');
      await record(store, 'operations', 'operation');
      await record(store, 'my-account-1', 'other');
      const read = async (...prefixes: string[]): Promise<string[]> =>
        (await collect(subscribed(store, { prefixes }), (_, last) => last.caughtUp)).names;
      expect(await read('account-')).toEqual(['account']);
      expect(await read('transaction-')).toEqual(['transaction']);
      expect(await read('operations', 'account-')).toEqual(['account', 'operation']);
      expect(await read('account-', 'transaction-')).toEqual(['account', 'transaction']);
      expect(await read()).toEqual(['account', 'transaction', 'operation', 'other']);
    });

    test('moves its position over ranges that do not match', async () => {
      const store = await opened();
      await record(store, 'account-1', 'a');
      const end = await record(store, 'transaction-1', 'b', 'c');
      const batches = subscribed(store, { prefixes: ['account-'] });
      const read = await collect(batches, (_, last) => last.caughtUp && last.position >= end);
      expect(read.names).toEqual(['a']);
      const later = await record(store, 'transaction-2', 'd');
      expect((await collect(batches, (_, last) => last.position >= later)).names).toEqual([]);
    });

    test('yields large events in batches of a few MiB, and leaves none out', async () => {
      const store = await opened();
      const expected = Array.from({ length: 60 }, (_, index) => `${index} ${'x'.repeat(100_000)}`);
      const following = subscribed(store);
      await following.next();
      for (const [index, name] of expected.entries()) await record(store, `account-${index}`, name);
      const isAll = (names: readonly string[]): boolean => names.length === expected.length;
      const read = await collect(following, isAll); // the events that came while its reader was slow
      expect(read.names).toEqual(expected);
      expect((await collect(subscribed(store), isAll)).names).toEqual(expected);
      const largest = Math.max(...read.batches.map(({ events }) => bytesOf(events)));
      expect(largest).toBeLessThan(MAX_BATCH_BYTES + 101_000);
    });

    test('reports when it has caught up, also on an empty store, and sends heartbeats while idle', async () => {
      const store = await opened();
      const end = await store.head();
      const batches = subscribed(store);
      const isAlone = !sharedLog && noiseOf === undefined;
      let position = isAlone ? 0 : end;
      for (let round = 0; round < 2; round++) {
        const startMs = performance.now();
        const { value } = await batches.next();
        expect(value).toMatchObject({ events: [], caughtUp: true });
        if (!isAlone) expect(value.position).toBeGreaterThanOrEqual(position);
        else expect(value.position).toBe(position);
        expect(performance.now() - startMs).toBeLessThan(3_000);
        position = value.position;
      }
    });

    test('reports that it has not caught up while there are more events', async () => {
      const store = await opened();
      await record(store, 'account-1', 'a', 'b', 'c');
      const batches = subscribed(store, { batchSize: 2 });
      const read = await collect(batches, (names) => names.length === 3);
      expect(read.batches.find(({ events }) => events.length > 0)?.caughtUp).toBe(false);
    });

    test('waits for a slow consumer', async () => {
      const store = await opened();
      for (let stream = 0; stream < 5; stream++) await record(store, `account-${stream}`, 'a', 'b');
      const batches = subscribed(store, { batchSize: 2 });
      const first = await collect(batches, (names) => names.length > 0);
      for (let stream = 5; stream < 10; stream++) await record(store, `account-${stream}`, 'a', 'b');
      const rest = await collect(batches, (names) => first.names.length + names.length === 20);
      expect(first.names.length).toBeLessThanOrEqual(2);
      expect(rest.batches.every(({ events }) => events.length <= 2)).toBe(true);
    });

    test('ends without an error, and at once, when it is aborted before, while waiting and between batches', async () => {
      const store = await opened();
      expect(await subscribed(store, { signal: AbortSignal.abort() }).next()).toMatchObject({ done: true });
      const waiting = new AbortController();
      const batches = subscribed(store, { signal: waiting.signal });
      await batches.next();
      const next = batches.next();
      const startMs = performance.now();
      waiting.abort();
      expect(await next).toMatchObject({ done: true });
      expect(performance.now() - startMs).toBeLessThan(500);
      await record(store, 'account-1', 'a', 'b', 'c');
      const between = new AbortController();
      const reading = subscribed(store, { signal: between.signal, batchSize: 1 });
      await reading.next();
      between.abort();
      expect(await reading.next()).toMatchObject({ done: true });
    });

    test('several see the same events', async () => {
      const store = await opened();
      const readers = [subscribed(store), subscribed(store), subscribed(store)];
      const reading = readers.map((batches) => collect(batches, (names) => names.length === 2));
      await record(store, 'account-1', 'a', 'b');
      for (const { names } of await Promise.all(reading)) expect(names).toEqual(['a', 'b']);
    });
  });
}
