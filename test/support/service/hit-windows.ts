import { parentPort, workerData } from 'node:worker_threads';
import { createMemoryRateWindows } from '../../../src/pull/edge/rate-windows/memory.ts';

/** A thread that hits every key several times at the same moment as the others, and reports what was let through. */
const { memory, keys, hits, start, threads, limit } = workerData as {
  memory: SharedArrayBuffer;
  keys: number;
  hits: number;
  /** Counts the threads that have begun. */
  start: SharedArrayBuffer;
  threads: number;
  limit: number;
};
const begun = new Int32Array(start);
const windows = createMemoryRateWindows({ memory });
const passed = Array.from({ length: keys }, () => 0);
Atomics.add(begun, 0, 1);
while (Atomics.load(begun, 0) < threads); // all at once, on as many cores as there are
for (let hit = 0; hit < hits; hit++) {
  for (let key = 0; key < keys; key++) {
    const { allowed } = await windows.hit(`key ${key}`, limit);
    if (allowed) passed[key] = (passed[key] ?? 0) + 1;
  }
}
parentPort?.postMessage(passed);
