import { describe, expect, test } from 'vitest';
import type { DomainEvent } from '../../../src/domain/events.ts';
import { membersOf } from '../../../src/event-store/codec.ts';
import type { EventStore } from '../../../src/event-store/event-store.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import { importAnswer } from '../../../src/operator/answers/import.ts';
import {
  findImport,
  listImports,
  recordedBy,
  recordImport,
} from '../../../src/operator/import/import-log.ts';
import { replacing } from '../../support/interposed.ts';
import { cancelled, confirmed, linesOf, minutely, voided } from '../../support/transactions/e2e-samples.ts';
import { endingAfter, IMPORT_AUTHOR, importAll, startImports } from '../../support/transactions/importing.ts';

const DAY_MS = 86_400_000;

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  return Array.fromAsync(items);
}

/** The events that each import recorded: `transaction-1@0`. */
async function recordedByEach(store: EventStore, nowMs: number): Promise<string[][]> {
  const imports = await all(listImports(store, { nowMs }));
  return Promise.all(
    imports.map(async (entry) =>
      (await all(recordedBy(store, entry))).flatMap(({ events }) =>
        events.map(({ stream, revision }) => `${stream}@${revision}`),
      ),
    ),
  );
}

describe('an import that is recorded', () => {
  test('says who began it, when, from which file, and what it came to', async () => {
    const { store, clock, append } = startImports();
    await append('operations', { type: 'StoreNamed', data: { store_id: 'a' } });
    const of9 = { account_id: 9 };
    const lines = [confirmed(1), confirmed(2, of9), voided(1), confirmed(1), cancelled(8)];
    const { counts, importId } = await importAll({ store, clock, lines: linesOf(lines), source: 'a.jsonl' });
    expect(counts).toEqual({ recorded: 3, unchanged: 1, refused: 1 });
    const [entry, ...others] = await all(listImports(store, { nowMs: clock.now() }));
    expect(others).toEqual([]);
    expect(entry).toMatchObject({
      id: importId,
      source: 'a.jsonl',
      started: { metadata: IMPORT_AUTHOR },
      end: { ...counts, accounts: [7, 9], endedAtMs: clock.now() },
    });
    expect(importId).toMatch(/^2026-09-03-[0-9a-f]{8}$/);
    expect(await findImport(store, importId ?? '')).toEqual(entry);
    expect(await findImport(store, '2026-09-03-00000000')).toBeUndefined();
    expect(await findImport(store, '../../etc')).toBeUndefined();
  });

  test('leaves no event where all was recorded before, and one where a line was refused', async () => {
    const { store, clock } = startImports();
    const lines = linesOf([confirmed(1), confirmed(2)]);
    await importAll({ store, clock, lines });
    const head = await store.head();
    expect(await importAll({ store, clock, lines })).toEqual({
      counts: { recorded: 0, unchanged: 2, refused: 0 },
      importId: undefined,
    });
    expect(await store.head()).toBe(head);
    const { importId } = await importAll({ store, clock, lines: linesOf([cancelled(9_999)]) });
    expect((await findImport(store, importId ?? ''))?.end).toMatchObject({ recorded: 0, refused: 1 });
  });

  test('ended between any two of its appends, leaves no transaction that none of its imports names', async () => {
    const lines = linesOf([...minutely(1_001), voided(5)]);
    for (let appends = 0; appends < 5; appends++) {
      const { store, clock, append } = startImports();
      await append('operations', { type: 'StoreNamed', data: { store_id: 'a' } });
      const killed = importAll({ store: endingAfter(appends, store), clock, lines });
      if (appends < 4) await expect(killed).rejects.toThrow('ended');
      else await killed;
      await importAll({ store, clock, lines });
      const recorded = (await recordedByEach(store, clock.now())).flat();
      expect(recorded).toHaveLength(1_002);
      expect(new Set(recorded)).toEqual(
        new Set([...minutely(1_001).map((_, n) => `transaction-${n + 1}@0`), 'transaction-5@1']),
      );
    }
  });

  test('that was killed has no end, and is read up to the end of the log', async () => {
    const { store, clock, append } = startImports();
    await append('operations', { type: 'StoreNamed', data: { store_id: 'a' } });
    await expect(
      importAll({ store: endingAfter(2, store), clock, lines: linesOf(minutely(1_001)) }),
    ).rejects.toThrow('ended');
    await importAll({ store, clock, lines: linesOf(minutely(1_001)), source: 'again' });
    const [again, killed] = await all(listImports(store, { nowMs: clock.now() }));
    expect(killed).toMatchObject({ source: 'lines.jsonl', end: undefined });
    expect(killed && importAnswer(killed)).toMatchObject({ state: 'interrupted', recorded: null });
    expect(again && importAnswer(again)).toMatchObject({ state: 'ended', recorded: 1 });
    expect(killed && (await all(recordedBy(store, killed)))).toHaveLength(1_000);
  });

  test('reads nothing that was recorded after its end', async () => {
    const { store, clock } = startImports();
    const { importId = '' } = await importAll({ store, clock, lines: linesOf([confirmed(1)]) });
    await importAll({ store, clock, lines: linesOf(minutely(3_000).slice(1)) });
    const read: number[] = [];
    const watched = replacing(store, {
      async *subscribe(options) {
        for await (const batch of store.subscribe(options)) {
          read.push(batch.events.length);
          yield batch;
        }
      },
    });
    const entry = await findImport(store, importId);
    expect(entry && (await all(recordedBy(watched, entry))).map(({ id }) => id)).toEqual([1]);
    expect(read).toHaveLength(1);
  });

  test('is known by an event that a redaction has moved behind its end', async () => {
    const { store, clock, append } = startImports();
    const { importId = '' } = await importAll({ store, clock, lines: linesOf([cancelled(9_999)]) });
    const entry = await findImport(store, importId);
    if (entry === undefined) throw new Error('there is no import');
    const leaf = { index: 3, stream: 'transaction-1', revision: 1, leaf: 'a' };
    const about = { driver_id: 77, account_id: 7, reason: 'asked', leaves: [leaf] };
    await append('operations', { type: 'DriverRedacted', data: about });
    expect(await all(recordedBy(store, entry))).toEqual([]);
    const author = {
      ...IMPORT_AUTHOR,
      correlationId: String(membersOf(entry.started.metadata).correlation_id),
    };
    const moved = newEvent(confirmed(1) as DomainEvent, author, clock.now());
    await store.append([{ stream: 'transaction-1', expected: 'any', events: [moved] }]);
    expect((await all(recordedBy(store, entry))).map(({ id }) => id)).toEqual([1]);
  });

  test('of an earlier version is known by its start and its end, and its plans are ignored', async () => {
    const { store, clock } = startImports();
    const { importId = '' } = await importAll({ store, clock, lines: linesOf([confirmed(1), confirmed(2)]) });
    const plan = {
      id: crypto.randomUUID(),
      type: 'ImportPlanned',
      data: { import_id: importId, transactions: [9] },
    };
    await store.append([
      { stream: `import-${importId}`, expected: 'any', events: [{ ...plan, metadata: {} as never }] },
    ]);
    const entry = await findImport(store, importId);
    expect(entry && (await all(recordedBy(store, entry))).map(({ id }) => id)).toEqual([1, 2]);
  });

  test('that another import overtakes names only what it recorded itself', async () => {
    const { store, clock, append } = startImports();
    await append('operations', { type: 'StoreNamed', data: { store_id: 'a' } });
    let overtaken = false;
    const overtaking: EventStore = {
      ...endingAfter(Number.POSITIVE_INFINITY, store),
      async append(appends) {
        const isOfTransactions = appends.some(({ stream }) => stream.startsWith('transaction-'));
        if (isOfTransactions && !overtaken) {
          overtaken = true;
          await importAll({ store, clock, lines: linesOf([confirmed(2)]) });
        }
        return store.append(appends);
      },
    };
    const { counts } = await importAll({
      store: overtaking,
      clock,
      lines: linesOf([confirmed(1), confirmed(2)]),
    });
    expect(counts).toEqual({ recorded: 1, unchanged: 1, refused: 0 });
    expect((await recordedByEach(store, clock.now())).toSorted()).toEqual([
      ['transaction-1@0'],
      ['transaction-2@0'],
    ]);
  });

  test('is listed by the month it began in, newest first, back to when the store was named', async () => {
    const { store, clock, append } = startImports();
    const days = ['2026-09-30', '2026-10-01', '2026-12-31', '2027-01-01', '2027-01-01'];
    await append('operations', { type: 'StoreNamed', data: { store_id: 'a' } });
    for (const [at, day] of days.entries()) {
      clock.advance(Date.parse(`${day}T23:00:00Z`) - clock.now());
      await importAll({ store, clock, lines: linesOf([confirmed(at + 1)]), source: `${at}` });
    }
    const nowMs = Date.UTC(2027, 2, 1);
    const sources = async (sinceMs?: number) =>
      (await all(listImports(store, { nowMs, sinceMs }))).map(({ source }) => source);
    expect(await sources()).toEqual(['4', '3', '2', '1', '0']);
    expect(await sources(Date.parse('2026-10-01T23:00:00Z'))).toEqual(['4', '3', '2', '1']);
    expect(await sources(nowMs + DAY_MS)).toEqual([]);
  });

  test('whose store has no name yet is not listed, and does not fail', async () => {
    const { store, clock } = startImports();
    expect(await all(listImports(store, { nowMs: clock.now() }))).toEqual([]);
  });

  test('interrupted between two batches ends with what it recorded', async () => {
    const { store, clock } = startImports();
    const interrupted = new AbortController();
    const { counts, importId } = await recordImport({
      store,
      clock,
      author: IMPORT_AUTHOR,
      source: 'a',
      signal: interrupted.signal,
      input: (async function* () {
        yield Buffer.from(linesOf(minutely(1_500)));
      })(),
      onRefused: () => undefined,
      onProgress: () => interrupted.abort(),
    });
    expect(counts).toEqual({ recorded: 1_000, unchanged: 0, refused: 0 });
    const entry = await findImport(store, importId ?? '');
    expect(entry?.end).toMatchObject({ recorded: 1_000 });
    expect(entry && (await all(recordedBy(store, entry)))).toHaveLength(1_000);
  });
});
