import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { MAX_BATCH_BYTES } from '../../../src/event-store/batch-bytes.ts';
import type { EventStore } from '../../../src/event-store/event-store.ts';
import { recordOperations } from '../../../src/event-store/operations.ts';
import { type RecordedEvent, Unreadable } from '../../../src/event-store/recorded-event.ts';
import { storeIdentity } from '../../../src/event-store/store-identity.ts';
import {
  appendCopies,
  copyEvents,
  eraseStreams,
  stretchesOf,
  toCopied,
} from '../../../src/operator/copy/copy-events.ts';
import { namedLeaves } from '../../../src/seals/named-leaves.ts';
import { verifyLog } from '../../../src/seals/verify-log.ts';
import { assertNoUnfinishedCopy } from '../../../src/service/stores/unfinished-copy.ts';
import { newDelivery } from '../../support/deliveries/deliveries.ts';
import { eventStoreDbAt, eventStoreDbOnDouble } from '../../support/event-store/eventstoredb-under-test.ts';
import { named, record } from '../../support/event-store/store-events.ts';
import { replacing } from '../../support/interposed.ts';
import { key, seal } from '../../support/seals/sealing.ts';
import {
  copyFrom,
  kept,
  logOf,
  newEnd,
  openEnd,
  PROVEN,
  RealisticStore,
  sample,
} from '../../support/store-copy/store-copy.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const COPIER = join(import.meta.dirname, '../../support/store-copy/copy-and-die.ts');
const endOf = (folder: string) => {
  const end = openEnd(folder);
  onTestFinished(() => end.close());
  return end;
};
const isOfTransaction = ({ stream }: { readonly stream: string }) => stream.startsWith('transaction-');
const own = (events: readonly RecordedEvent[]) => events.filter(({ stream }) => !stream.startsWith('$'));
/** By stream and revision, without the record of the copy itself. */
const contentOf = async (store: EventStore) =>
  own(await logOf(store))
    .filter(({ type }) => type !== 'StoreCopied')
    .map(kept)
    .sort((a, b) => (a.stream === b.stream ? a.revision - b.revision : a.stream < b.stream ? -1 : 1));
const copyRecords = async (store: EventStore) =>
  (await store.readStream('operations')).filter(({ type }) => type === 'StoreCopied');

/** Returns the other events before each event of a transaction: they decide who is owed it. */
async function precedence(store: EventStore): Promise<ReadonlyMap<string, string>> {
  const before = new Set<string>();
  const found = new Map<string, string>();
  for (const { stream, revision, type } of own(await logOf(store))) {
    const place = `${stream}@${revision}`;
    if (isOfTransaction({ stream })) found.set(place, [...before].sort().join());
    else if (type !== 'StoreNamed' && type !== 'StoreCopied') before.add(place);
  }
  return found;
}

describe('events', () => {
  const step = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constant('append' as const),
        stream: fc.constantFrom(
          'transaction-1',
          'transaction-2',
          'transaction-3',
          'transaction-4',
          'account-7',
          'account-8',
          'operations',
        ),
        many: fc.integer({ min: 1, max: 3 }),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constant('erase' as const),
        stream: fc.constantFrom('transaction-1', 'transaction-4', 'transaction-9'),
      }),
    },
  );

  test('of any log are the same in the target as in the source, wherever and how often the copy was interrupted', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 30 }),
        fc.array(fc.nat(20), { maxLength: 3 }),
        async (steps, interruptions) => {
          const folders = [temporaryFolder(), temporaryFolder()] as const;
          const [source, into] = [openEnd(folders[0]), openEnd(folders[1])];
          const target = { ...into, store: new RealisticStore(into.store) };
          try {
            await storeIdentity(source.store, systemClock);
            for (const [index, made] of steps.entries()) {
              if (made.do === 'erase') await source.store.erase(made.stream);
              else {
                if (await source.store.isErased(made.stream)) continue;
                await record(
                  source.store,
                  made.stream,
                  ...Array.from({ length: made.many }, (_, n) => `${index}.${n}`),
                );
              }
            }
            for (const appends of interruptions) {
              target.store.appendsLeft = appends;
              await copyFrom(source, target).catch(() => undefined);
            }
            target.store.appendsLeft = Infinity;
            const report = await copyFrom(source, target);
            const content = await contentOf(source.store);
            expect(report).toMatchObject({ events: content.length, ...PROVEN });
            expect(await contentOf(target.store)).toEqual(content);
            expect(await precedence(target.store)).toEqual(await precedence(source.store));
            expect(await into.erasedStreams()).toEqual(await source.erasedStreams());
            expect(await copyRecords(target.store)).toHaveLength(1);
          } finally {
            await Promise.all([source.close(), into.close()]);
            for (const folder of folders) rmSync(folder, { recursive: true });
          }
        },
      ),
      { numRuns: 20 },
    );
  });

  test('of thousands, with their deliveries, are neither lost nor doubled by kill -9 at any stage', async () => {
    const folders = [temporaryFolder(), temporaryFolder()] as const;
    const source = endOf(folders[0]);
    await storeIdentity(source.store, systemClock);
    const ids = Array.from({ length: 2_500 }, (_, n) => n);
    const appends = ids.map((n) => ({
      stream: `transaction-${n}`,
      expected: 'none' as const,
      events: [named(`${n}`)],
    }));
    await source.store.append(appends);
    await source.queue.enqueue(ids.slice(0, 1_200).map((n) => newDelivery(n)));
    for (const [events, batches] of [
      [1_500, 0],
      [1, 0],
      [9_999, 0],
      [9_999, 1],
    ]) {
      const args = [COPIER, ...folders, String(events), String(batches)];
      const [code, signal] = await once(spawn(process.execPath, args, { stdio: 'inherit' }), 'exit');
      expect([code, signal]).toEqual([null, 'SIGKILL']);
    }
    const target = endOf(folders[1]);
    await expect(assertNoUnfinishedCopy(target.coordination)).rejects.toMatchObject({ code: 'REFUSED' });
    const report = await copyFrom(source, target);
    expect(report).toEqual({ events: 2_501, deliveries: 1_200, copiedBefore: false, ...PROVEN });
    await assertNoUnfinishedCopy(target.coordination);
    expect(await contentOf(target.store)).toEqual(await contentOf(source.store));
    expect(await copyRecords(target.store)).toHaveLength(1);
  });
});

describe('a stretch', () => {
  test('ends where events of transactions and others meet', () => {
    const streams = [
      'account-1',
      'operations',
      'transaction-1',
      'transaction-2',
      'account-1',
      'transaction-1',
    ];
    const stretches = stretchesOf(streams.map((stream) => ({ stream }) as RecordedEvent));
    expect(stretches.map((stretch) => stretch.map(({ stream }) => stream))).toEqual([
      streams.slice(0, 2),
      streams.slice(2, 4),
      streams.slice(4, 5),
      streams.slice(5),
    ]);
  });
});

describe('copies of events', () => {
  test('are refused where their revisions are taken, and the first ten are reported with the reason', async () => {
    const [source, target] = [newEnd(), newEnd()];
    for (let id = 1; id <= 12; id++) {
      await record(source.store, `transaction-${id}`, 'ours');
      if (id > 1) await record(target.store, `transaction-${id}`, 'theirs');
    }
    await target.store.erase('transaction-1');
    const events = await logOf(source.store);
    await expect(appendCopies(events, target.store)).rejects.toMatchObject({
      code: 'REFUSED',
      message: expect.stringMatching(
        /^the target already has other events in place of 12 events: transaction-1@0, whose stream is erased/,
      ),
    });
    const { message } = (await appendCopies(events, target.store).catch((error) => error)) as Error;
    expect(message).toContain('transaction-2@0, whose stream ends at 0 there');
    expect(message.split('; ')).toHaveLength(10);
    const late = events.slice(0, 1).map((event) => ({ ...event, stream: 'transaction-99', revision: 1 }));
    await expect(appendCopies(late, target.store)).rejects.toThrow('whose stream does not exist there');
  });

  test('keep their metadata, and are not made of an event without a time that can be read', () => {
    const event = (metadata: unknown) =>
      ({ stream: 'account-1', revision: 0, data: {}, metadata, recordedAtMs: 1_000 }) as RecordedEvent;
    const kept = { at: '2026-09-03T10:00:00+02:00', note: 'x' };
    expect(toCopied(event(kept)).metadata).toEqual(kept);
    for (const metadata of [{ at: '2026-02-30T00:00:00Z' }, {}, null, 'text', { at: 5 }])
      expect(() => toCopied(event(metadata))).toThrow('it does not say when it happened');
  });

  test('are not made of what is not JSON, in its data or metadata', () => {
    const event = { stream: 'account-1', revision: 3, data: {}, metadata: {}, recordedAtMs: 0 };
    for (const part of ['data', 'metadata']) {
      const broken = { ...event, [part]: new Unreadable(`${part} is not JSON`) } as unknown as RecordedEvent;
      expect(() => toCopied(broken)).toThrow(
        expect.objectContaining({
          code: 'REFUSED',
          message: `account-1@3 can't be copied: ${part} is not JSON`,
        }),
      );
    }
  });
});

test('a copy erases in the target all that was erased, however much it is', async () => {
  const [source, target] = [await sample(), newEnd()];
  for (let id = 100; id < 155; id++) await source.store.erase(`transaction-${id}`);
  expect(await copyFrom(source, target)).toMatchObject(PROVEN);
  expect(await target.erasedStreams()).toEqual(await source.erasedStreams());
});

test('large events are copied in batches of a few MiB, also where a copy continues', async () => {
  const [{ store: source }, { store: target }] = [newEnd(), newEnd()];
  const first = named('first');
  for (const store of [source, target]) {
    await store.append([{ stream: 'operations', expected: 'none', events: [first] }]);
  }
  for (let index = 0; index < 400; index++) {
    const event = named(`${index} ${'x'.repeat(100_000)}`);
    await source.append([{ stream: `account-${index}`, expected: 'none', events: [event] }]);
  }
  const sizes: number[] = [];
  const measured = replacing(target, {
    append: (appends) => {
      sizes.push(JSON.stringify(appends).length);
      return target.append(appends);
    },
  });
  const copy = () => copyEvents({ source, target: measured, onCopied: () => undefined });
  await copy();
  expect(Math.max(...sizes)).toBeLessThan(MAX_BATCH_BYTES + 110_000);
  await copy();
  expect(await target.head()).toBe(401);
});

test('what was sealed is proven in the copy on EventStoreDB, erased events included, and sealed on there', async () => {
  const { store: source } = newEnd();
  for (let at = 0; at < 40; at++) {
    await record(source, `transaction-${at}`, `a${at}`, `b${at}`);
    if (at % 7 === 0) await record(source, `account-${at}`, 'c');
    if (at % 20 === 19) await seal(source);
  }
  const events = await source.readStream('transaction-3');
  const data = {
    transaction_id: 3,
    account_id: 7,
    reason: 'asked for',
    leaves: await namedLeaves(source, events),
  };
  const author = { actor: 'test', command: 'erase' };
  await recordOperations(source, [{ type: 'TransactionErased', data }], { author, clock: systemClock });
  await source.erase('transaction-3');
  await seal(source);
  const target = process.env.EVENTSTORE_URL
    ? eventStoreDbAt(process.env.EVENTSTORE_URL)
    : await eventStoreDbOnDouble();
  const erasedStreams = ['transaction-3'];
  await eraseStreams(erasedStreams, target);
  await copyEvents({ source, target, onCopied: () => undefined });
  const proof = await verifyLog({ store: target, key });
  expect(proof).toMatchObject({ fault: undefined, erased: [expect.objectContaining({ events: 2 })] });
  await record(target, 'account-99', 'd');
  await seal(target);
  expect(await verifyLog({ store: target, key })).toMatchObject({ fault: undefined, seals: proof.seals + 1 });
});
