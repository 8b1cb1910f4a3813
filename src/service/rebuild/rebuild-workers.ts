import type { Config } from '../../config/config.ts';
import { startThread } from '../../thread.ts';
import type { RebuildThreadData } from './rebuild-thread.ts';

const ENTRY = new URL('./rebuild-thread.ts', import.meta.url);
const MEMORY = { youngMb: 32, oldMb: 256 };

/**
 * Runs `count` threads that apply segments of the build that is under way; resolves when all have ended, and rejects when
 * one fails. Those that work then stop after their batch, as they do when `signal` aborts.
 */
export async function runRebuildWorkers(
  count: number,
  {
    config,
    holder,
    signal,
  }: { readonly config: Config; readonly holder: string; readonly signal: AbortSignal },
): Promise<void> {
  const failed = new AbortController();
  const until = AbortSignal.any([signal, failed.signal]);
  const threads = Array.from({ length: count }, async (_, n) => {
    try {
      await runRebuildThread({ config, holder: `${holder}-${n + 1}`, task: 'segments' }, until);
    } catch (error) {
      failed.abort();
      throw error;
    }
  });
  const results = await Promise.allSettled(threads);
  const error = results.find((result) => result.status === 'rejected');
  if (error !== undefined) throw error.reason;
}

/** Resolves when the thread has ended, rejects with its error. `signal` asks it to stop. */
export function runRebuildThread(data: RebuildThreadData, signal: AbortSignal): Promise<void> {
  return startThread({ name: 'a thread of the rebuild', entry: ENTRY, data, memory: MEMORY, signal }).ended;
}
