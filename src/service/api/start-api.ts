import { type Config, requestLogMs } from '../../base/config/config.ts';
import {
  claimPort,
  FIRST_PASSED_SOCKET,
  type ListenPlace,
  passedSockets,
  urlHost,
} from '../../base/listen.ts';
import type { Log } from '../../base/log.ts';
import { aborted } from '../../base/pause.ts';
import { removeHourly } from '../../base/time/hourly.ts';
import { world } from '../../base/world.ts';
import { MAX_UNPROVEN_KEYS } from '../../pull/admission.ts';
import { BASE_PATH } from '../../pull/app.ts';
import { windowsMemory } from '../../pull/edge/rate-windows/memory.ts';
import {
  certificateEnd,
  certificateFiles,
  readCertificate,
  watchCertificate,
} from '../../pull/server/certificate.ts';
import { connectionsMemory } from '../../pull/server/connection-gate.ts';
import type { Metrics } from '../ops/metrics.ts';
import type { MetricsJson } from '../ops/work-metrics.ts';
import type { ThreadHost } from '../threads/job.ts';
import { DIRECTORY_HEAP_MB, youngMb } from '../threads/memory.ts';
import { startJob } from '../threads/start-job.ts';
import type { ApiJobData } from './api-job.ts';
import { type ApiServerParts, createApiServer, GRACE_MS, type SharedApi } from './api-server.ts';

const TICKET_KEYS_BYTES = 48;

/**
 * The names of the further API threads: as many as the configuration says, or one for each socket that was passed to the
 * process, less the main one. None where the platform can't share a port among them, which is logged.
 */
export function furtherApiThreads(
  { FUEL_API_THREADS }: Config,
  log: Log,
  canShare = process.platform === 'linux',
): readonly string[] {
  const threads = passedSockets() || FUEL_API_THREADS;
  if (threads === 1) return [];
  if (!canShare) {
    log.warn({ threads }, 'this platform can not share a port among threads: one thread answers the API');
    return [];
  }
  return Array.from({ length: threads - 1 }, (_, index) => `api-${index + 2}`);
}

export interface ApiParts extends Omit<ApiServerParts, 'pem' | 'shared'> {
  readonly metrics: ApiServerParts['metrics'] & Pick<Metrics, 'certificateEnd'>;
  readonly host: ThreadHost;
  /** Ends the start. */
  readonly signal: AbortSignal;
  /** Besides the main one, which answers too. */
  readonly threads: readonly string[];
  /** For them. */
  readonly ofThreads: Pick<ApiJobData, 'standing' | 'directory'> & {
    /** The position of a thread's directory. */
    readonly onMoved: (name: string, position: number) => void;
    readonly onMetrics: (name: string, metrics: MetricsJson) => void;
  };
}

export interface RunningApi {
  /** Base address of the endpoint. */
  readonly url: string;
  /** What those of the further threads lack that can't judge access, by their names; `undefined`: nothing. */
  readonly missing: string | undefined;
  /** Rejects when one of its threads ends; stays pending while they work. */
  readonly failed: Promise<never>;
  stop(): Promise<void>;
}

/**
 * Starts the public listener with the pull API behind it, in the main thread and in the further ones. Resolves when all
 * listen; when one fails before, or the signal aborts, stops the others and rejects with its error.
 */
export async function startApi(parts: ApiParts): Promise<RunningApi> {
  const { config, engines, log, clock, signal, host, threads: names, ofThreads, metrics } = parts;
  const files = config.FUEL_TLS === 'terminated' ? undefined : await certificateFiles(config, log);
  const pem = files && readCertificate(files);
  if (pem !== undefined) metrics.certificateEnd.set(certificateEnd(pem) / 1000);
  const shared = names.length === 0 ? undefined : sharedApi();
  const server = createApiServer({ ...parts, pem, shared });
  const placeOf = await listenPlaces(config, names.length + 1);
  const { address, port } = await server.listen(placeOf(0));
  const { onMoved, onMetrics, ...started } = ofThreads;
  const threads = names.map((name, index) =>
    startJob(host, {
      ...{ job: 'api', name, log: { role: 'api', thread: name } },
      data: { ...started, place: placeOf(index + 1), pem, shared } satisfies ApiJobData,
      memory: { youngMb: youngMb(engines), oldMb: DIRECTORY_HEAP_MB },
      onMoved: (position) => onMoved(name, position),
      onMetrics: (metrics) => onMetrics(name, metrics),
    }),
  );
  const failed = Promise.race(threads.map((thread) => thread.failed));
  const stopped = new AbortController();
  const trim = () => engines.requests().trim(clock.now() - requestLogMs(config));
  removeHourly('requests of keys', trim, { log, signal: stopped.signal });
  const stop = async (): Promise<void> => {
    stopped.abort();
    await Promise.all([server.stop(GRACE_MS), ...threads.map((thread) => thread.stop())]);
  };
  try {
    await Promise.race([failed, Promise.all(threads.map(({ listening }) => listening)), aborted(signal)]);
    signal.throwIfAborted();
  } catch (error) {
    await stop();
    throw error;
  }
  const watch =
    files &&
    watchCertificate(files, log, (renewed) => {
      server.reload(renewed);
      metrics.certificateEnd.set(certificateEnd(renewed) / 1000);
      for (const thread of threads) thread.tell(renewed);
    });
  return {
    url: `${files === undefined ? 'http' : 'https'}://${urlHost(passedSockets() > 0 ? address : config.FUEL_LISTEN.host)}:${port}${BASE_PATH}`,
    get missing() {
      const missing = threads.flatMap(({ missing }, at) => (missing ? [`${names[at]}: ${missing}`] : []));
      return missing.length === 0 ? undefined : missing.join('; ');
    },
    failed,
    async stop() {
      watch?.stop();
      await stop();
    },
  };
}

/** Where each of the threads listens, by its index. */
async function listenPlaces(
  { FUEL_LISTEN }: Config,
  threads: number,
): Promise<(index: number) => ListenPlace> {
  if (passedSockets() > 0) return (index) => ({ fd: FIRST_PASSED_SOCKET + index });
  const place = threads === 1 ? FUEL_LISTEN : { ...(await claimPort(FUEL_LISTEN)), reusePort: true };
  return () => place;
}

/** What the threads of a process share; each gets it at its start. */
function sharedApi(): SharedApi {
  return {
    windows: { keys: windowsMemory(), unproven: windowsMemory(MAX_UNPROVEN_KEYS) },
    connections: connectionsMemory(),
    ticketKeys: world.randomBytes(TICKET_KEYS_BYTES),
  };
}
