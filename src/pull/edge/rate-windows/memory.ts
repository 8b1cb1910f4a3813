import { type Clock, sinceBoot } from '../../../base/clock.ts';
import { SharedTable, tableMemory } from '../counts/shared-table.ts';
import { type RateVerdict, type RateWindows, WINDOW_SECONDS } from './rate-windows.ts';

const WINDOW_MS = WINDOW_SECONDS * 1_000;
/** Keys that are counted at once: with more of them windows that end first may be forgotten. */
const MAX_IDS = 250_000;

export interface MemoryWindowsOptions {
  readonly maxIds?: number;
  /** From `windowsMemory` with the same `maxIds`, where threads share the windows. */
  readonly memory?: SharedArrayBuffer | undefined;
  /** The same in all threads, and never set back. */
  readonly clock?: Clock;
}

export function windowsMemory(maxIds = MAX_IDS): SharedArrayBuffer {
  return tableMemory(maxIds);
}

/** Windows of this process, exact over all threads that share their memory. */
export function createMemoryRateWindows(options: MemoryWindowsOptions = {}): RateWindows {
  const { maxIds = MAX_IDS, memory = windowsMemory(maxIds), clock = sinceBoot } = options;
  const windows = new SharedTable(memory, {
    isAlive: ({ timeMs: endsAtMs }) => endsAtMs > clock.now(),
  });
  return {
    async hit(id, limit) {
      return windows.change(id, (window): RateVerdict => {
        const leftMs = window.timeMs - clock.now();
        if (leftMs <= 0) {
          window.count = 1;
          window.timeMs = clock.now() + WINDOW_MS;
          return { allowed: true };
        }
        if (window.count >= limit) {
          return { allowed: false, retryAfterSeconds: Math.max(1, Math.ceil(leftMs / 1_000)) };
        }
        window.count += 1;
        return { allowed: true };
      });
    },
  };
}
