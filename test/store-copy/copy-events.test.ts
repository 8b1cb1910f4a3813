import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import type { EventStore, RecordedEvent } from '../../src/event-store/event-store.ts';
import { storeIdentity } from '../../src/event-store/store-identity.ts';
import { stretchesOf } from '../../src/store-copy/append-copies.ts';
import type { CopyProgress } from '../../src/store-copy/copy-store.ts';
import { assertNoUnfinishedCopy } from '../../src/store-copy/unfinished-copy.ts';
import { newDelivery } from '../support/deliveries/deliveries.ts';
import { named, record } from '../support/event-store/store-events.ts';
import { copyFrom, kept, logOf, openEnd, RealisticStore } from '../support/store-copy/store-copy.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const COPIER = join(import.meta.dirname, '../support/store-copy/copy-and-die.ts');
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

/** Which events of other kinds stand before each event of a transaction: what decides who is owed it. */
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

  test('of any log stand in the target as in the source, wherever and how often the copy was interrupted', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 30 }),
        fc.array(fc.nat(20), { maxLength: 3 }),
        fc.nat(5),
        async (steps, interruptions, seed) => {
          const folders = [temporaryFolder(), temporaryFolder()] as const;
          const [source, into] = [openEnd(folders[0]), openEnd(folders[1])];
          const target = { ...into, store: new RealisticStore(into.store, seed) };
          try {
            for (const [index, made] of steps.entries()) {
              if (index === 3) await storeIdentity(source.store, systemClock);
              if (made.do === 'erase') await source.store.erase(made.stream);
              else if (made.stream !== 'operations' || index > 3) {
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
            expect(report).toMatchObject({ events: content.length, faults: [] });
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
  }, 60_000);

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
    const steps: CopyProgress[] = [];
    const report = await copyFrom(source, target, { onProgress: (progress) => steps.push(progress) });
    expect(report).toEqual({ events: 2_501, deliveries: 1_200, copiedBefore: false, faults: [] });
    expect(steps.map(({ step }) => step)).not.toContain('events copied'); // they all were there
    await assertNoUnfinishedCopy(target.coordination);
    expect(await contentOf(target.store)).toEqual(await contentOf(source.store));
    expect(await copyRecords(target.store)).toHaveLength(1);
  }, 60_000);
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
