import { startThread, type ThreadMemory } from '../../base/thread.ts';
import type { MetricsJson } from '../ops/work-metrics.ts';
import type { FromThread, JobData, ThreadHost } from './job.ts';

export interface JobOptions {
  readonly job: string;
  readonly log: JobData['log'];
  /** The job's own data. The thread gets a copy. */
  readonly data?: object;
  readonly memory: ThreadMemory;
  /** Asks the thread to stop. */
  readonly signal?: AbortSignal;
  readonly onMetrics?: (metrics: MetricsJson) => void;
}

export interface JobThread {
  /** Resolves when the thread has ended; rejects with its error. It need not be handled. */
  readonly ended: Promise<void>;
  /** Rejects when the thread ends with an error or without being asked to. It need not be handled. */
  readonly failed: Promise<never>;
  /** The thing that its work lacked when it last reported; `undefined` if it lacked nothing. */
  readonly missing: string | undefined;
  /** True once nothing was missing. */
  readonly wasReady: boolean;
  /** Asks the thread to stop. Resolves when it has ended. */
  stop(): Promise<void>;
}

/** Starts a thread that does one job. */
export function startJob({ entry, config, holder }: ThreadHost, options: JobOptions): JobThread {
  const { job, log, data, memory, onMetrics } = options;
  const asked = new AbortController();
  const signal = AbortSignal.any([asked.signal, ...(options.signal ? [options.signal] : [])]);
  let missing: string | undefined = 'the thread is starting';
  let wasReady = false;
  const isCounted = onMetrics !== undefined;
  const started: JobData = { host: { entry: entry.href, config, holder }, job, log, isCounted, data };
  const thread = startThread<FromThread>({
    name: `the thread ${job}`,
    entry,
    data: started,
    memory,
    signal,
    onMessage(message) {
      if (message.kind === 'ready') {
        missing = message.missing;
        wasReady ||= missing === undefined;
      } else onMetrics?.(message.metrics);
    },
  });
  const failed = thread.ended.then(() => {
    if (!signal.aborted) throw new Error(`the thread ${job} ended without being asked`);
    return new Promise<never>(() => undefined);
  });
  failed.catch(() => undefined);
  return {
    ended: thread.ended,
    failed,
    get missing() {
      return missing;
    },
    get wasReady() {
      return wasReady;
    },
    async stop() {
      asked.abort();
      await thread.ended.catch(() => undefined); // `failed` reports it
    },
  };
}
