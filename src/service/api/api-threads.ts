import { randomBytes } from 'node:crypto';
import type { Config } from '../../base/config/config.ts';
import { canReusePort } from '../../base/listen.ts';
import type { Log } from '../../base/log.ts';
import { MAX_UNPROVEN_KEYS } from '../../pull/edge/checks.ts';
import { windowsMemory } from '../../pull/edge/rate-windows/memory.ts';
import { connectionsMemory } from '../../pull/server/connection-gate.ts';
import type { MetricsJson } from '../ops/work-metrics.ts';
import type { ThreadHost } from '../threads/job.ts';
import { DIRECTORY_HEAP_MB } from '../threads/memory.ts';
import { type JobThread, startJob } from '../threads/start-job.ts';
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

/** What a further API thread reports to the process. */
export interface ApiThreadReports {
  /** The position of a thread's directory. */
  readonly onMoved: (name: ApiThreadName, position: number) => void;
  readonly onMetrics: (name: ApiThreadName, metrics: MetricsJson) => void;
}

/** It reloads its certificate when it is told another one. */
export function startApiThread(
  host: ThreadHost,
  name: ApiThreadName,
  { onMoved, onMetrics, youngMb, ...data }: ApiJobData & ApiThreadReports & { readonly youngMb: number },
): JobThread {
  return startJob(host, {
    ...{ job: 'api', name, log: { role: 'api', thread: name }, data },
    memory: { youngMb, oldMb: DIRECTORY_HEAP_MB },
    onMoved: (position) => onMoved(name, position),
    onMetrics: (metrics) => onMetrics(name, metrics),
  });
}
