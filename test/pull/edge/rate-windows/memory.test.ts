import { describe, expect, test } from 'vitest';
import {
  createMemoryRateWindows,
  type MemoryWindowsOptions,
} from '../../../../src/pull/edge/rate-windows/memory.ts';
import { allowed, rateWindowsContract } from '../../../contracts/rate-windows.contract.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

function opened(options: MemoryWindowsOptions = {}) {
  const clock = new FakeClock();
  return { clock, windows: createMemoryRateWindows({ ...options, steady: clock }) };
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
    const { clock, windows } = opened({ maxIds: 3 });
    for (const id of ['a', 'b', 'c']) {
      await windows.hit(id, 2);
      clock.advance(1_000);
    }
    await windows.hit('d', 2); // replaces `a`
    expect(await allowed(windows, { id: 'b', limit: 2, hits: 5 })).toBe(1);
    clock.advance(58_000); // `b` has ended
    await windows.hit('e', 2);
    for (const id of ['c', 'd', 'e']) expect(await allowed(windows, { id, limit: 2, hits: 5 })).toBe(1);
    for (const id of ['a', 'b']) expect(await allowed(windows, { id, limit: 2, hits: 5 })).toBe(2);
  });

  test('are exact by the real clock too', async () => {
    const windows = createMemoryRateWindows();
    expect(await allowed(windows, { limit: 3, hits: 5 })).toBe(3);
    expect(await windows.hit('key', 3)).toEqual({ allowed: false, retryAfterSeconds: 60 });
  });
});
