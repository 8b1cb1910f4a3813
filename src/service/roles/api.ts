import type { RequestListener } from 'node:http';
import type { AccessRows } from '../../accounts/caller.ts';
import { openMasterKeys } from '../../accounts/master-key.ts';
import type { Clock } from '../../base/clock.ts';
import { certificateEnd, readCertificate, watchCertificate } from '../../base/config/certificate-files.ts';
import { type Config, requestLogMs } from '../../base/config/config.ts';
import { FuelError } from '../../base/errors.ts';
import { FIRST_PASSED_SOCKET, type ListenPlace, passedSockets, urlHost } from '../../base/listen.ts';
import type { Log } from '../../base/log.ts';
import { removeHourly } from '../../base/time/hourly.ts';
import { world } from '../../base/world.ts';
import { timeForAges } from '../../event-store/reads.ts';
import { type EdgeOptions, MAX_UNPROVEN_KEYS } from '../../pull/admission.ts';
import { BASE_PATH, createApi } from '../../pull/app.ts';
import { createCursors } from '../../pull/cursor.ts';
import { createMemoryRateWindows } from '../../pull/edge/rate-windows/memory.ts';
import { RequestRecorder } from '../../pull/request-journal.ts';
import { certificateFiles } from '../../pull/server/certificate.ts';
import { ServerConnections } from '../../pull/server/connections.ts';
import { createServer } from '../../pull/server/server.ts';
import { configuredPresigner } from '../../records/presign.ts';
import type { Engines } from '../engines/engines.ts';
import type { Metrics } from '../ops/metrics.ts';

/** How long requests in progress may take when the service stops. */
const GRACE_MS = 10_000;
const CURSOR_PURPOSE = 'cursors';

export interface ApiParts {
  readonly config: Config;
  readonly engines: Engines;
  readonly accounts: AccessRows;
  readonly availability: () => 'ready' | 'unavailable';
  readonly metrics: Metrics;
  readonly log: Log;
  readonly clock: Clock;
  /** Wraps the API's listener, so that a sandbox can answer in its place. */
  readonly wrap?: WrapListener | undefined;
}

export type WrapListener = (listener: RequestListener) => RequestListener;

export interface RunningApi {
  /** The base URL of the API. */
  readonly url: string;
  /** Serves on for `FUEL_STOP_DELAY` while its clients and load balancers go elsewhere, and then ends. */
  stop(): Promise<void>;
}

/**
 * The role `api`: the public listener with the pull API. It answers in the main thread; further processes can answer on
 * the same port. Resolves when it listens.
 */
export async function startApi(parts: ApiParts): Promise<RunningApi> {
  const { config, engines, metrics, log, clock } = parts;
  const files = config.FUEL_TLS === 'terminated' ? undefined : await certificateFiles(config, log);
  const pem = files && readCertificate(files);
  if (pem !== undefined) metrics.certificateEnd.set(certificateEnd(pem) / 1000);
  const proxies = config.FUEL_TRUSTED_PROXIES ?? [];
  const journal = engines.requests();
  const requests = new RequestRecorder({ journal, clock, log, dropped: metrics.requestsNotKept });
  const connections = new ServerConnections();
  const { wrap = (listener) => listener } = parts;
  const api = createApi({
    ...parts,
    requests,
    connections,
    environment: config.FUEL_ENVIRONMENT,
    edge: edgeOptions(config, engines),
    proxies,
    tlsTerminated: pem === undefined,
    view: engines.view(),
    presigner: configuredPresigner(config),
    cursors: createCursors(openMasterKeys(config).deriveKeys(CURSOR_PURPOSE)),
  });
  const onTurnedAway = (reason: string): void => metrics.connectionsTurnedAway.inc({ reason });
  const server = createServer({ handler: wrap(api), pem, proxies, log, onTurnedAway, connections });
  const place = listenPlace(config);
  const { address, port } = await server.listen(place);
  const watch =
    files &&
    watchCertificate({ files, log }, (renewed) => {
      server.reload(renewed);
      metrics.certificateEnd.set(certificateEnd(renewed) / 1000);
    });
  const stopped = new AbortController();
  const trim = async () => journal.trim((await timeForAges(engines.store(), clock)) - requestLogMs(config));
  removeHourly('requests of keys', trim, { log, signal: stopped.signal });
  const host = urlHost('fd' in place ? address : place.host);
  return {
    url: `${files === undefined ? 'http' : 'https'}://${host}:${port}${BASE_PATH}`,
    async stop() {
      server.drain();
      await world.sleep(config.FUEL_STOP_DELAY);
      watch?.stop();
      stopped.abort();
      await server.stop(GRACE_MS);
      await requests.stop();
    },
  };
}

function edgeOptions(config: Config, engines: Engines): EdgeOptions {
  if (config.FUEL_EDGE === 'external') return { kind: 'external', tokens: config.FUEL_EDGE_TOKEN ?? [] };
  const unproven = createMemoryRateWindows({ maxIds: MAX_UNPROVEN_KEYS });
  return { kind: 'embedded', windows: { keys: engines.rateWindows(), unproven } };
}

/** Returns the socket that systemd passed, if any, otherwise `FUEL_LISTEN`. Throws `REFUSED` if several were passed. */
function listenPlace({ FUEL_LISTEN }: Config): ListenPlace {
  const sockets = passedSockets();
  if (sockets > 1) {
    throw new FuelError(
      'REFUSED',
      `${sockets} sockets were passed to this process, and it listens on one. Keep one ListenStream in fuel-api.socket`,
    );
  }
  return sockets === 1 ? { fd: FIRST_PASSED_SOCKET } : FUEL_LISTEN;
}
