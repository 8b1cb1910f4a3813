import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { RequestRecorder, type RequestRow } from '../../src/pull/request-journal.ts';
import { requestRow } from '../contracts/request-journal.contract.ts';
import { memoryLog } from '../support/service/api.ts';

const SECOND_MS = 1_000;
const { atMs: _, count: __, ...ROW } = requestRow(0);
const REFUSED = { ...ROW, status: 429, code: 'RATE_LIMITED', rows: null, query: null } as const;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function recording(append: (rows: readonly RequestRow[]) => Promise<void>) {
  const lines: Record<string, unknown>[] = [];
  let dropped = 0;
  const recorder = new RequestRecorder({
    journal: { append },
    clock: { now: () => Date.now() },
    log: memoryLog(lines),
    dropped: {
      inc: (count = 1) => {
        dropped += count;
      },
    },
  });
  return { recorder, lines, dropped: () => dropped };
}

describe('requests that are recorded', () => {
  test('are stored together once a second, and none where there was none', async () => {
    const stored: number[] = [];
    const { recorder } = recording(async (rows) => void stored.push(rows.length));
    await vi.advanceTimersByTimeAsync(3 * SECOND_MS);
    expect(stored).toEqual([]);
    for (let n = 0; n < 3; n++) recorder.add(ROW);
    await vi.advanceTimersByTimeAsync(SECOND_MS);
    recorder.add(ROW);
    await vi.advanceTimersByTimeAsync(SECOND_MS);
    expect(stored).toEqual([3, 1]);
  });

  test('wait in their order while the store is unavailable, and each outage is logged once', async () => {
    const stored: number[] = [];
    let isDown = true;
    const { recorder, lines } = recording(async (rows) => {
      if (isDown) throw new Error('down');
      for (const { status } of rows) stored.push(status);
    });
    for (const status of [200, 401]) {
      recorder.add({ ...ROW, status });
      await vi.advanceTimersByTimeAsync(2 * SECOND_MS);
    }
    expect(lines).toMatchObject([{ msg: expect.stringContaining('could not be stored') }]);
    isDown = false;
    recorder.add({ ...ROW, status: 429 });
    await vi.advanceTimersByTimeAsync(SECOND_MS);
    expect(stored).toEqual([200, 401, 429]);
    expect(lines).toHaveLength(1);
    isDown = true;
    recorder.add(ROW);
    await vi.advanceTimersByTimeAsync(2 * SECOND_MS);
    expect(lines).toHaveLength(2);
  });

  test('are counted and lost beyond a bound, so that the memory has one', async () => {
    const { recorder, dropped } = recording(() => Promise.reject(new Error('down')));
    for (let n = 0; n < 50_010; n++) recorder.add(ROW);
    expect(dropped()).toBe(10);
  });

  test('are stored when the thread stops: those under way first, the others once', async () => {
    const stored: number[] = [];
    const first = Promise.withResolvers<void>();
    const { recorder } = recording(async (rows) => {
      if (stored.length === 0) {
        stored.push(rows.length);
        await first.promise;
      } else stored.push(rows.length);
    });
    recorder.add(ROW);
    await vi.advanceTimersByTimeAsync(SECOND_MS);
    recorder.add(ROW);
    recorder.add(ROW);
    const stopped = recorder.stop();
    first.resolve();
    await stopped;
    expect(stored).toEqual([1, 2]);
    await vi.advanceTimersByTimeAsync(5 * SECOND_MS);
    expect(stored).toEqual([1, 2]);
  });

  test('do not keep a thread from stopping where their store stays away', async () => {
    const { recorder, dropped, lines } = recording(() => Promise.reject(new Error('down')));
    recorder.add(ROW);
    recorder.add(ROW);
    await recorder.stop();
    expect(dropped()).toBe(2);
    expect(lines.at(-1)).toMatchObject({ lost: 2 });
    await recorder.stop();
    expect(dropped()).toBe(2);
  });

  test('are stored part by part, and after a failure only those that were not', async () => {
    const stored: number[] = [];
    let failsAt = 2;
    const { recorder, dropped, lines } = recording(async (rows) => {
      if (--failsAt === 0) throw new Error('down');
      for (const { status } of rows) stored.push(status);
    });
    const all = Array.from({ length: 1_203 }, (_, status) => status);
    for (const status of all) recorder.add({ ...ROW, status });
    await vi.advanceTimersByTimeAsync(SECOND_MS);
    await vi.waitFor(() => expect(lines).toHaveLength(1));
    expect(stored.length).toBeGreaterThan(0);
    expect(stored.length).toBeLessThan(all.length);
    await recorder.stop();
    expect(stored).toEqual(all);
    expect(dropped()).toBe(0);
  });
});

describe('refused requests', () => {
  /** Records what a store has: of each key, code, address and minute the newest row. */
  function counting() {
    const rows: RequestRow[] = [];
    const recorded = recording(async (added) => void rows.push(...added));
    return { ...recorded, rows, counts: () => rows.map(({ count }) => count) };
  }

  test('are stored with their first one, and again with their count when the minute is over', async () => {
    vi.setSystemTime(0);
    const { recorder, counts } = counting();
    for (let second = 0; second < 30; second++) {
      for (let n = 0; n < 100; n++) recorder.add(REFUSED);
      await vi.advanceTimersByTimeAsync(SECOND_MS);
    }
    expect(counts()).toEqual([100]);
    await vi.advanceTimersByTimeAsync(40 * SECOND_MS);
    expect(counts()).toEqual([100, 3_000]);
    recorder.add(REFUSED);
    await recorder.stop();
    expect(counts()).toEqual([100, 3_000, 1]);
  });

  test('are stored with their count when the process stops, or counted as lost', async () => {
    const { recorder, counts } = counting();
    recorder.add(REFUSED);
    await vi.advanceTimersByTimeAsync(SECOND_MS);
    recorder.add(REFUSED);
    await recorder.stop();
    expect(counts()).toEqual([1, 2]);

    const failing = recording(() => Promise.reject(new Error('down')));
    for (let n = 0; n < 3; n++) failing.recorder.add(REFUSED);
    await failing.recorder.stop();
    expect([failing.dropped(), failing.lines.at(-1)]).toMatchObject([3, { lost: 3 }]);
  });

  test('of one that a slow store holds up are counted on, and none is lost', async () => {
    const gate = Promise.withResolvers<void>();
    const counts: number[] = [];
    const { recorder } = recording(async (rows) => {
      await gate.promise;
      for (const { count } of rows) counts.push(count);
    });
    recorder.add(REFUSED);
    await vi.advanceTimersByTimeAsync(SECOND_MS);
    recorder.add(REFUSED);
    gate.resolve();
    await recorder.stop();
    expect(counts).toEqual([1, 2]);
  });

  test('of one key take at most 100 KB a minute beside the accepted ones, from any addresses and with any filter', async () => {
    vi.setSystemTime(0);
    const { recorder, rows } = counting();
    const corporate_id = Array.from({ length: 1_000 }, (_, n) => 9_000_000 + n);
    const query = { ...ROW.query, references: { corporate_group_id: 3, corporate_id } } as typeof ROW.query;
    for (let n = 0; n < 10_000; n++) {
      const code = (['CORPORATE_NOT_FOUND', 'RATE_LIMITED', 'INVALID_API_KEY'] as const)[n % 3] ?? null;
      recorder.add({ ...REFUSED, code, address: `2001:db8:1234:5678:9abc:def0:1234:${n % 900}`, query });
    }
    for (let n = 0; n < 60; n++) recorder.add({ ...ROW, query });
    await vi.advanceTimersByTimeAsync(70 * SECOND_MS);
    expect(JSON.stringify(rows).length).toBeLessThan(100_000);
    expect(rows.every(({ query: kept }) => kept?.corporateIds === 1_000)).toBe(true);
    const last = new Map(rows.map((row) => [`${row.code} ${row.address}`, row.count]));
    expect([...last.values()].reduce((sum, count) => sum + count, 0)).toBe(10_000 + 1);
    await recorder.stop();
  });
});
