import type { AccessDirectory } from '../../accounts/caller.ts';
import { openMasterKeys } from '../../accounts/master-key.ts';
import type { Engines } from '../../app.ts';
import type { Clock } from '../../clock.ts';
import type { Config } from '../../config/config.ts';
import { MAX_UNPROVEN_KEYS } from '../../edge/checks.ts';
import { createMemoryRateWindows } from '../../edge/rate-windows/memory.ts';
import type { EdgeOptions } from '../../http/admission.ts';
import { createApi } from '../../http/app.ts';
import { createCursors } from '../../http/cursor.ts';
import type { Certificate } from '../../http/server/certificate.ts';
import { createServer, type PublicServer, type SharedListening } from '../../http/server/server.ts';
import { configuredPresigner } from '../../images/presign.ts';
import type { Log } from '../../log.ts';
import type { ApiMetrics } from '../../ops/api-metrics.ts';

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
  const { config, engines, pem, shared, metrics, log } = parts;
  const proxies = config.FUEL_TRUSTED_PROXIES ?? [];
  const handler = createApi({
    ...parts,
    environment: config.FUEL_ENVIRONMENT,
    edge: edgeOptions(config, engines, shared),
    proxies,
    tlsTerminated: pem === undefined,
    view: engines.view(),
    presigner: configuredPresigner(config),
    cursors: createCursors(openMasterKeys(config).deriveKeys(CURSOR_PURPOSE)),
  });
  return createServer({
    handler,
    tls: pem === undefined ? { kind: 'terminated', proxies } : { kind: 'served', pem, proxies },
    log,
    shared,
    onTurnedAway: (reason) => metrics.connectionsTurnedAway.inc({ reason }),
  });
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
