import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { Registry } from 'prom-client';
import { type Clock, systemClock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import { createLog, type Log, silentLog } from '../../base/log.ts';
import { world } from '../../base/world.ts';
import type { Engines, OpenEngines } from '../engines/engines.ts';
import { watchLoopDelay } from '../ops/loop-delay.ts';
import { type MetricsJson, type WorkMetrics, workMetrics } from '../ops/work-metrics.ts';

/** What all threads of a process begin with. */
export interface ThreadHost {
  /** The file that runs in each. */
  readonly entry: URL;
  readonly config: Config;
  /** Names this process among those that hold leases and claim deliveries. */
  readonly holder: string;
}

/** What a thread is started with. */
export interface JobData {
  readonly host: Omit<ThreadHost, 'entry'> & { readonly entry: string };
  /** Its name among the jobs of the entry. */
  readonly job: string;
  /** Of the thread, unique in its process: in metrics and errors. */
  readonly name: string;
  /** The fields of its log's lines; `undefined`: it logs nothing, as a command's threads do. */
  readonly log: Readonly<Record<string, string>> | undefined;
  /** Whether anybody takes what it counts. */
  readonly isCounted: boolean;
  /** The job's own. */
  readonly data: unknown;
}

/** What a thread is told: to stop, or what its job takes. */
export type ToThread = 'stop' | { readonly tell: unknown };

/** What a thread reports. A failure is the error that it ends with. */
export type FromThread =
  /** Of its directory. */
  | { readonly kind: 'moved'; readonly position: number }
  | { readonly kind: 'listening' }
  /** What is missing for its work; `undefined`: nothing. */
  | { readonly kind: 'ready'; readonly missing: string | undefined }
  /** All that it has counted since its start: every second, and at its end. */
  | { readonly kind: 'metrics'; readonly metrics: MetricsJson }
  | { readonly kind: 'result'; readonly value: unknown };

export interface JobContext extends ThreadHost {
  readonly name: string;
  readonly engines: Engines;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: WorkMetrics;
  /** Aborts when the thread is asked to stop. */
  readonly signal: AbortSignal;
  report(message: FromThread): void;
  /** `take` gets what the thread is told from now on. */
  onTold(take: (value: unknown) => void): void;
}

/** What a thread does; it ends when this resolves, and fails when it rejects. */
export type Job<Data> = (context: JobContext, data: Data) => Promise<void>;

/** The jobs by name. Each is loaded by the threads that do it. */
export type Jobs = Readonly<Record<string, () => Promise<Job<never>>>>;

const REPORT_EVERY_MS = 1_000;

/** The thread that a job runs in. */
export interface OwnThread {
  readonly data: JobData;
  /** To who has started it. */
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
  const { host, job, name, log: fields, isCounted, data } = own.data;
  const stopping = new AbortController();
  const told: unknown[] = [];
  let take = (value: unknown): void => void told.push(value);
  port?.on('message', (message: ToThread) => {
    if (message === 'stop') stopping.abort();
    else take(message.tell);
  });
  const report = (message: FromThread): void => port?.postMessage(message);
  const load = jobs[job];
  if (load === undefined) throw new Error(`there is no job ${job}`);
  const config = withKeys(host.config);
  const log = fields === undefined ? silentLog : own.createLog(config.FUEL_LOG_LEVEL, fields);
  const registry = new Registry();
  const metrics = workMetrics(registry);
  const loop = isCounted ? watchLoopDelay(metrics.loopDelay, name) : undefined;
  const count = async (): Promise<void> =>
    report({ kind: 'metrics', metrics: await registry.getMetricsAsJSON() });
  const counting = isCounted ? world.setInterval(count, REPORT_EVERY_MS).unref() : undefined;
  const run = await load();
  const engines = await openEngines(config, systemClock, log);
  const signal = stopping.signal;
  try {
    const context: JobContext = {
      ...{ ...host, config, entry: new URL(host.entry) },
      ...{ name, engines, clock: systemClock, log, metrics, signal, report },
      onTold(next) {
        take = next;
        for (const value of told.splice(0)) next(value);
      },
    };
    await run(context, data as never);
  } finally {
    world.clearInterval(counting);
    loop?.stop();
    if (isCounted) await count();
    await engines.close();
    port?.close();
  }
}

/** The configuration as a thread uses it: keys arrive as plain bytes. */
function withKeys(given: Config): Config {
  return { ...given, FUEL_MASTER_KEY: given.FUEL_MASTER_KEY?.map((key) => Buffer.from(key)) };
}
