import { describe, expect, test } from 'vitest';
import { withinTime } from '../../../src/base/time/within-time.ts';

const LIMIT_MS = 150; // long compared with the pauses of a loaded machine
const later = <T>(ms: number, value: T) => new Promise<T>((resolve) => setTimeout(() => resolve(value), ms));

/** Blocks this process for at least this long. Returns how long it was in truth. */
function blockFor(ms: number): number {
  const startedAt = performance.now();
  while (performance.now() - startedAt < ms);
  return performance.now() - startedAt;
}

/** Work under the limit, and the state of its signal. The work calls `step` for each step of the other side. */
function limited(work: (step: () => void) => Promise<string>) {
  let told: AbortSignal | undefined;
  let steps = 0;
  const timed = withinTime({
    limitMs: LIMIT_MS,
    work: (signal) => {
      told = signal;
      return work(() => void steps++);
    },
    expired: (lateMs) => (lateMs < LIMIT_MS ? 'expired' : 'expired, and late itself'),
    progress: () => steps,
  });
  return { result: timed.then(({ result }) => result), timed, isAborted: () => told?.aborted };
}

describe('work within a time', () => {
  test('gives its own result, and its signal never aborts', async () => {
    const { result, isAborted } = limited(async () => 'done');
    expect(await result).toBe('done');
    await later(2 * LIMIT_MS, undefined);
    expect(isAborted()).toBe(false);
  });

  test('rejects as the work does', async () => {
    const { result, isAborted } = limited(() => Promise.reject(new Error('broken')));
    await expect(result).rejects.toThrow('broken');
    await later(2 * LIMIT_MS, undefined);
    expect(isAborted()).toBe(false);
  });

  test('is given up when the time is over, and its signal aborts', async () => {
    const { result, isAborted } = limited(() => later(10 * LIMIT_MS, 'late'));
    expect(await result).toBe('expired');
    expect(isAborted()).toBe(true);
  });

  test('gets back the time that a step of the other side waited for this process', async () => {
    const { timed } = limited(async (step) => {
      await later(5, undefined);
      step();
      return later(LIMIT_MS / 3, 'done');
    });
    const blockedMs = blockFor(2.5 * LIMIT_MS);
    const { result, lateMs } = await timed;
    expect(result).toBe('done');
    expect(lateMs).toBeGreaterThan(LIMIT_MS);
    expect(lateMs).toBeLessThan(blockedMs + LIMIT_MS); // this process may be late for other reasons too
  });

  test('gets nothing back where the other side made no step, however late this process was', async () => {
    const { result } = limited(() => later(5, undefined).then(() => later(LIMIT_MS / 3, 'done')));
    blockFor(2.5 * LIMIT_MS);
    expect(await result).toBe('expired');
  });

  test('is given up after seven times the limit whatever waited for this process', async () => {
    const { result } = limited(async (step) => {
      await later(5, undefined);
      step();
      return later(LIMIT_MS / 3, 'done');
    });
    blockFor(7.5 * LIMIT_MS);
    expect(await result).toBe('expired, and late itself');
  });

  test('is never given up before, although a timer may fire a part of a millisecond early', async () => {
    const lastedMs: Promise<number>[] = [];
    for (let count = 0; count < 100; count++) {
      const startedAt = performance.now();
      const { result } = limited(() => later(10 * LIMIT_MS, 'late'));
      lastedMs.push(result.then(() => performance.now() - startedAt));
      while (performance.now() - startedAt < 0.37); // each starts at a different part of its millisecond
      if (count % 10 === 0) await later(3, undefined);
    }
    expect(Math.min(...(await Promise.all(lastedMs)))).toBeGreaterThanOrEqual(LIMIT_MS);
  });
});
