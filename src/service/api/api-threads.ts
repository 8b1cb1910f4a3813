import { randomBytes } from 'node:crypto';
import type { Config } from '../../base/config/config.ts';
import { canReusePort } from '../../base/listen.ts';
import type { Log } from '../../base/log.ts';
import { MAX_UNPROVEN_KEYS } from '../../pull/edge/checks.ts';
import { windowsMemory } from '../../pull/edge/rate-windows/memory.ts';
import type { Certificate } from '../../pull/server/certificate.ts';
import { connectionsMemory } from '../../pull/server/connection-gate.ts';
import type { MetricsJson } from '../ops/work-metrics.ts';
import type { ThreadHost } from '../threads/job.ts';
import { DIRECTORY_HEAP_MB } from '../threads/memory.ts';
import { startJob } from '../threads/start-job.ts';
import type { ApiJobData } from './api-job.ts';
import type { SharedApi } from './api-server.ts';

const TICKET_KEYS_BYTES = 48;

/** Of a thread besides the main one, which is the first of them. */
export type ApiThreadName = `api-${number}`;

/**
 * The names of the further API threads: as many as the configuration says, less the main one. None where the platform
 * can't share a port among them, which is logged.
 */
export async function furtherApiThreads(
  { FUEL_API_THREADS: threads, FUEL_LISTEN: { host } }: Config,
  log: Log,
  canShare: (host: string) => Promise<boolean> = canReusePort,
): Promise<readonly ApiThreadName[]> {
  if (threads === 1) return [];
  if (!(await canShare(host))) {
    log.warn({ threads }, 'this platform can not share a port among threads: one thread answers the API');
    return [];
  }
  return Array.from({ length: threads - 1 }, (_, index): ApiThreadName => `api-${index + 2}`);
}

/** What the threads of a process share; each gets it at its start. */
export function sharedApi(): SharedApi {
  return {
    windows: { keys: windowsMemory(), unproven: windowsMemory(MAX_UNPROVEN_KEYS) },
    connections: connectionsMemory(),
    ticketKeys: randomBytes(TICKET_KEYS_BYTES),
  };
}

/** The further API threads of a process. */
export interface ApiThreads {
  /** What those lack that can't judge access, by their names; `undefined`: nothing. */
  readonly missing: string | undefined;
  /** Rejects when one ends with an error or without being asked. */
  readonly failed: Promise<never>;
  reload(pem: Certificate): void;
  stop(): Promise<void>;
}

/** Starts them. Resolves when all listen; when one fails before, stops the others and rejects with its error. */
export async function startApiThreads(
  host: ThreadHost,
  names: readonly ApiThreadName[],
  options: ApiJobData & {
    /** The position of a thread's directory. */
    readonly onMoved: (name: ApiThreadName, position: number) => void;
    readonly onMetrics: (name: ApiThreadName, metrics: MetricsJson) => void;
    readonly youngMb: number;
  },
): Promise<ApiThreads> {
  const { onMoved, onMetrics, youngMb, ...data } = options;
  const threads = names.map((name) =>
    startJob(host, {
      ...{ job: 'api', name, log: { role: 'api', thread: name }, data },
      memory: { youngMb, oldMb: DIRECTORY_HEAP_MB },
      onMoved: (position) => onMoved(name, position),
      onMetrics: (metrics) => onMetrics(name, metrics),
    }),
  );
  const failed = Promise.race(threads.map((thread) => thread.failed));
  const stop = async (): Promise<void> => {
    await Promise.all(threads.map((thread) => thread.stop()));
  };
  try {
    await Promise.race([failed, Promise.all(threads.map(({ listening }) => listening))]);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    get missing() {
      const missing = threads.flatMap(({ missing }, at) => (missing ? [`${names[at]}: ${missing}`] : []));
      return missing.length === 0 ? undefined : missing.join('; ');
    },
    failed,
    reload(pem) {
      for (const thread of threads) thread.tell(pem);
    },
    stop,
  };
}
