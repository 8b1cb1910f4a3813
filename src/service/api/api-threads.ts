import { randomBytes } from 'node:crypto';
import type { SharedRows } from '../../accounts/directory/rows/shared-rows.ts';
import type { Config } from '../../base/config/config.ts';
import { canReusePort } from '../../base/listen.ts';
import type { Log } from '../../base/log.ts';
import { MAX_UNPROVEN_KEYS } from '../../pull/edge/checks.ts';
import { windowsMemory } from '../../pull/edge/rate-windows/memory.ts';
import type { Certificate } from '../../pull/server/certificate.ts';
import { connectionsMemory } from '../../pull/server/connection-gate.ts';
import { addApiReport } from '../ops/api-meter.ts';
import type { Metrics } from '../ops/metrics.ts';
import type { Standing } from '../ops/standing.ts';
import { DIRECTORY_HEAP_MB, type RoleThread, startRoleThread } from '../roles/role-threads.ts';
import type { SharedApi } from './api-server.ts';
import type { ApiThreadData, ApiThreadMessage } from './api-thread.ts';

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

export interface ApiThreadOptions {
  readonly config: Config;
  readonly names: readonly ApiThreadName[];
  readonly standing: Standing;
  /** What the main thread's directory has started from, if anything. */
  readonly directory: SharedRows | undefined;
  readonly metrics: Metrics;
  /** The position of a thread's directory. */
  readonly onMoved: (name: ApiThreadName, position: number) => void;
}

/** The further API threads of a process. The main thread shows what they count. */
export class ApiThreads {
  readonly #options: ApiThreadOptions;
  readonly #threads: RoleThread[] = [];
  readonly #ready = new Set<ApiThreadName>();

  constructor(options: ApiThreadOptions) {
    this.#options = options;
  }

  get areReady(): boolean {
    return this.#ready.size === this.#options.names.length;
  }

  /** Resolves when all listen. Rejects when one fails before: the caller stops the others. */
  async start(rest: Pick<ApiThreadData, 'address' | 'pem' | 'shared'>): Promise<void> {
    const listening = this.#options.names.map((name) => this.#start(name, rest));
    await Promise.all(listening);
  }

  /** Rejects when a thread ends with an error or without being asked. */
  get failed(): Promise<never> {
    return Promise.race(this.#threads.map(({ failed }) => failed));
  }

  reload(pem: Certificate): void {
    for (const thread of this.#threads) thread.post({ pem });
  }

  async stop(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.stop()));
  }

  #start(name: ApiThreadName, rest: Pick<ApiThreadData, 'address' | 'pem' | 'shared'>): Promise<void> {
    const { config, standing, directory } = this.#options;
    const data: ApiThreadData = { config, name, standing: standing.memory, directory, ...rest };
    const { promise: listening, resolve } = Promise.withResolvers<void>();
    const thread = startRoleThread<ApiThreadMessage>({
      role: 'api',
      entry: new URL('./api-thread.ts', import.meta.url),
      data,
      heapMb: DIRECTORY_HEAP_MB,
      onMessage: (message) => (message.kind === 'listening' ? resolve() : this.#took(name, message)),
    });
    this.#threads.push(thread);
    return Promise.race([listening, thread.failed]);
  }

  #took(name: ApiThreadName, message: Exclude<ApiThreadMessage, { kind: 'listening' }>): void {
    const { metrics, onMoved } = this.#options;
    if (message.kind === 'moved') {
      onMoved(name, message.position);
      return;
    }
    addApiReport(metrics, message.report);
    metrics.loopDelay(name, message.loopDelayMs);
    if (message.isReady) this.#ready.add(name);
    else this.#ready.delete(name);
  }
}
