import { type Clock, steadyClock } from '../../../base/clock.ts';
import { type RateWindows, WINDOW_SECONDS } from './rate-windows.ts';

const WINDOW_MS = WINDOW_SECONDS * 1_000;
/** The number of windows kept at once, which take about 30 MB. */
const MAX_IDS = 250_000;

export interface MemoryWindowsOptions {
  /** How many ids are counted at once. Beyond that, the windows that end first are forgotten. */
  readonly maxIds?: number;
  readonly steady?: Clock;
}

interface Window {
  readonly endsAtMs: number;
  count: number;
}

/** Creates rate windows for this process alone. */
export function createMemoryRateWindows(options: MemoryWindowsOptions = {}): RateWindows {
  const { maxIds = MAX_IDS, steady = steadyClock } = options;
  /** All windows have the same length, so the first one in the map ends first. */
  const windows = new Map<string, Window>();
  const begin = (id: string, nowMs: number): void => {
    windows.delete(id); // so that the new window becomes the last one
    for (const [first, { endsAtMs }] of windows) {
      if (endsAtMs > nowMs && windows.size < maxIds) break;
      windows.delete(first);
    }
    windows.set(id, { endsAtMs: nowMs + WINDOW_MS, count: 1 });
  };
  return {
    async hit(id, limit) {
      const nowMs = steady.now();
      const window = windows.get(id);
      const leftMs = window === undefined ? 0 : window.endsAtMs - nowMs;
      if (window === undefined || leftMs <= 0) begin(id, nowMs);
      else if (window.count < limit) window.count += 1;
      else return { allowed: false, retryAfterSeconds: Math.max(1, Math.ceil(leftMs / 1_000)) };
      return { allowed: true };
    },
  };
}
