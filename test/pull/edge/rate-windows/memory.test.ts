import { Worker } from 'node:worker_threads';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  createMemoryRateWindows,
  type MemoryWindowsOptions,
  windowsMemory,
} from '../../../../src/pull/edge/rate-windows/memory.ts';
import { allowed, rateWindowsContract } from '../../../contracts/rate-windows.contract.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

function opened(options: MemoryWindowsOptions = {}) {
  const clock = new FakeClock();
  return { clock, windows: createMemoryRateWindows({ ...options, clock }) };
}

describe('rate windows in memory', () => {
  rateWindowsContract(async () => {
    const { clock, windows } = opened();
    return { windows, pass: async (ms) => clock.advance(ms) };
  });

  test('end to the millisecond', async () => {
    const { clock, windows } = opened();
    await windows.hit('key', 2);
    clock.advance(59_000);
    await windows.hit('key', 2);
    expect(await windows.hit('key', 2)).toEqual({ allowed: false, retryAfterSeconds: 1 });
    clock.advance(999);
    expect(await windows.hit('key', 2)).toEqual({ allowed: false, retryAfterSeconds: 1 });
    clock.advance(1);
    expect(await allowed(windows, { limit: 2, hits: 3 })).toBe(2);
  });

  test('say the whole seconds that are left, begun ones too', async () => {
    const { clock, windows } = opened();
    await windows.hit('key', 1);
    expect(await windows.hit('key', 1)).toEqual({ allowed: false, retryAfterSeconds: 60 });
    clock.advance(500);
    expect(await windows.hit('key', 1)).toEqual({ allowed: false, retryAfterSeconds: 60 });
    clock.advance(1_000);
    expect(await windows.hit('key', 1)).toEqual({ allowed: false, retryAfterSeconds: 59 });
  });

  test('hold no more ids than they may: a window that ended is forgotten first, then the one that ends first', async () => {
    const { clock, windows } = opened({ maxIds: 1 });
    const ids = Array.from({ length: 16 }, (_, id) => `id ${id}`); // a bucket
    for (const id of ids) {
      await windows.hit(id, 2);
      clock.advance(1_000);
    }
    await windows.hit('another', 2);
    expect(await allowed(windows, { id: 'id 1', limit: 2, hits: 5 })).toBe(1);
    expect(await allowed(windows, { id: 'id 0', limit: 2, hits: 5 })).toBe(2);
  });

  test('are exact by the real clock too, which runs in all threads alike', async () => {
    const windows = createMemoryRateWindows();
    expect(await allowed(windows, { limit: 3, hits: 5 })).toBe(3);
    expect(await windows.hit('key', 3)).toEqual({ allowed: false, retryAfterSeconds: 60 });
  });

  test('let exactly the limit of each key through, however many threads count it at once', async () => {
    const [threads, keys, limit] = [4, 300, 7];
    const memory = windowsMemory();
    const entry = new URL('../../../support/service/hit-windows.ts', import.meta.url);
    const workerData = { memory, keys, hits: 5, start: new SharedArrayBuffer(4), threads, limit };
    const passed = await Promise.all(
      Array.from({ length: threads }, async () => {
        const worker = new Worker(entry, { workerData });
        onTestFinished(() => void worker.terminate());
        return new Promise<number[]>((resolve, reject) => {
          worker.once('message', resolve);
          worker.once('error', reject);
        });
      }),
    );
    const ofKey = Array.from({ length: keys }, (_, key) =>
      passed.reduce((sum, counts) => sum + (counts[key] ?? 0), 0),
    );
    expect(new Set(ofKey)).toEqual(new Set([limit]));
  });
});
