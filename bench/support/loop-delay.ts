import { writeFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';
import { percentile } from './pairs.ts';

/**
 * Preloaded into a process (`--import`) to measure how late its main loop gets to a timer. A late tick also
 * counts for the ticks that it delayed, so that one long stall weighs as much as it lasted. On SIGUSR2 the
 * figures since the last signal go to the file that `BENCH_LOOP_DELAY_FILE` names.
 */
const TICK_MS = 2;
const file = process.env.BENCH_LOOP_DELAY_FILE;

export interface LoopDelay {
  readonly p99Ms: number;
  readonly maxMs: number;
}

if (isMainThread && file !== undefined) {
  let delaysMs: number[] = [];
  let lastAtMs = performance.now();
  setInterval(() => {
    const now = performance.now();
    for (let lateMs = now - lastAtMs - TICK_MS; ; lateMs -= TICK_MS) {
      delaysMs.push(Math.max(0, lateMs));
      if (lateMs < TICK_MS) break;
    }
    lastAtMs = now;
  }, TICK_MS).unref();
  process.on('SIGUSR2', () => {
    const figures: LoopDelay = { p99Ms: percentile(delaysMs, 99), maxMs: percentile(delaysMs, 100) };
    delaysMs = [];
    writeFileSync(file, JSON.stringify(figures));
  });
}
