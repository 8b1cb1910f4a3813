import type { AccessDirectory } from '../../accounts/caller.ts';
import { openMasterKeys } from '../../accounts/master-key.ts';
import type { Clock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import type { Log } from '../../base/log.ts';
import { type EdgeOptions, MAX_UNPROVEN_KEYS } from '../../pull/admission.ts';
import type { ApiMetrics } from '../../pull/api-metrics.ts';
import { createApi } from '../../pull/app.ts';
import { createCursors } from '../../pull/cursor.ts';
import { createMemoryRateWindows } from '../../pull/edge/rate-windows/memory.ts';
import { configuredPresigner } from '../../pull/images/presign.ts';
import { RequestRecorder } from '../../pull/request-journal.ts';
import type { Certificate } from '../../pull/server/certificate.ts';
import { createServer, type PublicServer, type SharedListening } from '../../pull/server/server.ts';
import type { Engines } from '../engines/engines.ts';

/** How long requests in progress may take when the service stops. */
export const GRACE_MS = 10_000;
const CURSOR_PURPOSE = 'cursors';

/** What the API threads of a process share. */
export interface SharedApi extends SharedListening {
  /** Memory of the rate windows: of keys, where they are embedded, and of keys that are not proven. */
  readonly windows: { readonly keys: SharedArrayBuffer; readonly unproven: SharedArrayBuffer };
}

export interface ApiServerParts {
  readonly config: Config;
  readonly engines: Engines;
  readonly directory: AccessDirectory;
  readonly availability: () => 'ready' | 'unavailable';
  readonly metrics: ApiMetrics;
  readonly log: Log;
  readonly clock: Clock;
  /** `undefined` where a proxy ends TLS. */
  readonly pem: Certificate | undefined;
  /** `undefined` in a process with one API thread. */
  readonly shared: SharedApi | undefined;
}

/** The public server of one thread, with the pull API behind it. */
export function createApiServer(parts: ApiServerParts): PublicServer {
  const { config, engines, pem, shared, metrics, log, clock } = parts;
  const proxies = config.FUEL_TRUSTED_PROXIES ?? [];
  const journal = engines.requests();
  const requests = new RequestRecorder({ journal, clock, log, dropped: metrics.requestsNotKept });
  const handler = createApi({
    ...parts,
    requests,
    environment: config.FUEL_ENVIRONMENT,
    edge: edgeOptions(config, engines, shared),
    proxies,
    tlsTerminated: pem === undefined,
    view: engines.view(),
    presigner: configuredPresigner(config),
    cursors: createCursors(openMasterKeys(config).deriveKeys(CURSOR_PURPOSE)),
  });
  const server = createServer({
    handler,
    pem,
    proxies,
    log,
    shared,
    onTurnedAway: (reason) => metrics.connectionsTurnedAway.inc({ reason }),
  });
  return {
    ...server,
    async stop(graceMs) {
      await server.stop(graceMs);
      await requests.stop();
    },
  };
}

function edgeOptions(config: Config, engines: Engines, shared: SharedApi | undefined): EdgeOptions {
  if (config.FUEL_EDGE === 'external') return { kind: 'external', tokens: config.FUEL_EDGE_TOKEN ?? [] };
  return {
    kind: 'embedded',
    windows: {
      keys: engines.rateWindows(shared?.windows.keys),
      unproven: createMemoryRateWindows({ maxIds: MAX_UNPROVEN_KEYS, memory: shared?.windows.unproven }),
    },
  };
}
