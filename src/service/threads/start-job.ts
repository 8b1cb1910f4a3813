import { startThread, type ThreadMemory } from '../../base/thread.ts';
import type { MetricsJson } from '../ops/work-metrics.ts';
import type { FromThread, JobData, ThreadHost, ToThread } from './job.ts';

export interface JobOptions {
  readonly job: string;
  /** Of the thread, unique in its process; that of the job by default. */
  readonly name?: string;
  readonly log?: JobData['log'];
  /** The job's own; it is copied. */
  readonly data?: object;
  readonly memory: ThreadMemory;
  /** Asks the thread to stop. */
  readonly signal?: AbortSignal;
  readonly onMoved?: (position: number) => void;
  readonly onMetrics?: (metrics: MetricsJson) => void;
  readonly onResult?: (value: unknown, thread: Pick<JobThread, 'tell'>) => void;
}

export interface JobThread {
  /** Resolves when the thread has ended; rejects with its error. Nobody has to handle it. */
  readonly ended: Promise<void>;
  /** Rejects when it ends with an error or without being asked; stays pending while it works. Nobody has to handle it. */
  readonly failed: Promise<never>;
  /** Resolves when it listens. */
  readonly listening: Promise<void>;
  /** What it lacked for its work when it reported last; `undefined`: nothing. */
  readonly missing: string | undefined;
  /** Whether it lacked nothing once. */
  readonly wasReady: boolean;
  /** Hands it a value of its job's own kind. */
  tell(value: unknown): void;
  /** Asks it to stop; resolves when it has ended. */
  stop(): Promise<void>;
}

/** Starts a thread that does one job. */
export function startJob({ entry, config, holder }: ThreadHost, options: JobOptions): JobThread {
  const { job, name = job, log, data, memory, onMoved, onMetrics, onResult } = options;
  const asked = new AbortController();
  const signal = AbortSignal.any([asked.signal, ...(options.signal ? [options.signal] : [])]);
  const listening = Promise.withResolvers<void>();
  let missing: string | undefined = 'it starts';
  let wasReady = false;
  const isCounted = onMetrics !== undefined;
  const started: JobData = { host: { entry: entry.href, config, holder }, job, name, log, isCounted, data };
  const thread = startThread<FromThread>({
    ...{ name: `the thread ${name}`, entry, data: started, memory, signal },
    onMessage(message) {
      if (message.kind === 'moved') onMoved?.(message.position);
      else if (message.kind === 'listening') listening.resolve();
      else if (message.kind === 'ready') {
        missing = message.missing;
        wasReady ||= missing === undefined;
      } else if (message.kind === 'metrics') onMetrics?.(message.metrics);
      else onResult?.(message.value, { tell });
    },
  });
  const tell = (value: unknown): void => thread.post({ tell: value } satisfies ToThread);
  const failed = thread.ended.then(() => {
    if (!signal.aborted) throw new Error(`the thread ${name} ended without being asked`);
    return new Promise<never>(() => undefined);
  });
  failed.catch(() => undefined);
  return {
    ended: thread.ended,
    failed,
    listening: listening.promise,
    get missing() {
      return missing;
    },
    get wasReady() {
      return wasReady;
    },
    tell,
    async stop() {
      asked.abort();
      await thread.ended.catch(() => undefined); // `failed` reports it
    },
  };
}
