import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { Registry } from 'prom-client';
import { type Clock, systemClock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import { createLog, type Log } from '../../base/log.ts';
import { startTracing } from '../../base/tracing/start-tracing.ts';
import { world } from '../../base/world.ts';
import type { Engines, OpenEngines } from '../engines/engines.ts';
import { watchLoopDelay } from '../ops/loop-delay.ts';
import { type MetricsJson, type WorkMetrics, workMetrics } from '../ops/work-metrics.ts';

/** The data that all threads of a process share. */
export interface ThreadHost {
  /** The file that runs in each thread. */
  readonly entry: URL;
  readonly config: Config;
  /** Identifies this process as a holder of leases and claims. */
  readonly holder: string;
}

/** The data that a thread is started with. */
export interface JobData {
  readonly host: Omit<ThreadHost, 'entry'> & { readonly entry: string };
  /** The name of the job, which is also used in metrics and errors. */
  readonly job: string;
  /** The fields of its log lines. */
  readonly log: Readonly<Record<string, string>>;
  /** True if its metrics are reported. */
  readonly isCounted: boolean;
  /** The job's own data. */
  readonly data: unknown;
}

/** A message from a thread. A failure is not a message but the error that the thread ends with. */
export type FromThread =
  /** The thread is ready, or something is missing for its work. */
  | { readonly kind: 'ready'; readonly missing: string | undefined }
  /** Everything that the thread has counted since its start, reported every second and at its end. */
  | { readonly kind: 'metrics'; readonly metrics: MetricsJson };

export interface JobContext extends ThreadHost {
  readonly engines: Engines;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: WorkMetrics;
  /** Aborts when the thread is asked to stop. */
  readonly signal: AbortSignal;
  report(message: FromThread): void;
}

/** The work of a thread. The thread ends when it resolves, and fails when it rejects. */
export type Job<Data> = (context: JobContext, data: Data) => Promise<void>;

/** The jobs by name. Only threads that do a job load it. */
export type Jobs = Readonly<Record<string, () => Promise<Job<never>>>>;

const REPORT_EVERY_MS = 1_000;

/** The thread that a job runs in. */
export interface OwnThread {
  readonly data: JobData;
  /** The port to the thread that started it. */
  readonly port: Pick<MessagePort, 'on' | 'postMessage' | 'close'> | null;
  readonly createLog: typeof createLog;
}

/** Does the job that this thread was started for. */
export async function runJob(
  jobs: Jobs,
  openEngines: OpenEngines,
  own: OwnThread = { data: workerData, port: parentPort, createLog },
): Promise<void> {
  const { port } = own;
  const { host, job, log: fields, isCounted, data } = own.data;
  const stopping = new AbortController();
  port?.on('message', () => stopping.abort()); // the only message that is ever sent
  const report = (message: FromThread): void => port?.postMessage(message);
  const load = jobs[job];
  if (load === undefined) throw new Error(`there is no job ${job}`);
  const config = withKeys(host.config);
  const log = own.createLog(config.FUEL_LOG_LEVEL, fields);
  const registry = new Registry();
  const metrics = workMetrics(registry);
  const loop = isCounted ? watchLoopDelay(metrics.loopDelay, job) : undefined;
  const count = async (): Promise<void> =>
    report({ kind: 'metrics', metrics: await registry.getMetricsAsJSON() });
  const counting = isCounted ? world.setInterval(count, REPORT_EVERY_MS).unref() : undefined;
  const run = await load();
  const tracing = await startTracing(config, log);
  const engines = await openEngines(config, systemClock, { log });
  const signal = stopping.signal;
  try {
    const context: JobContext = {
      ...host,
      config,
      entry: new URL(host.entry),
      engines,
      clock: systemClock,
      log,
      metrics,
      signal,
      report,
    };
    await run(context, data as never);
  } finally {
    world.clearInterval(counting);
    loop?.stop();
    if (isCounted) await count();
    await engines.close();
    await tracing.stop();
    port?.close();
  }
}

/** Restores the configuration in a thread, where keys arrive as plain bytes. */
function withKeys(given: Config): Config {
  return { ...given, FUEL_MASTER_KEY: given.FUEL_MASTER_KEY?.map((key) => Buffer.from(key)) };
}
