import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { RequestRecorder, type RequestRow } from '../../src/pull/request-journal.ts';
import { requestRow } from '../contracts/request-journal.contract.ts';
import { memoryLog } from '../support/service/api.ts';

const SECOND_MS = 1_000;
const { atMs: _, ...ROW } = requestRow(0);

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

  test('wait in their order while the store is unavailable, which is logged once', async () => {
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
