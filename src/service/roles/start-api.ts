import type { AccessDirectory } from '../../accounts/caller.ts';
import { openMasterKeys } from '../../accounts/master-key.ts';
import type { Engines } from '../../app.ts';
import type { Clock } from '../../clock.ts';
import type { Config } from '../../config/config.ts';
import { MAX_UNPROVEN_KEYS } from '../../edge/checks.ts';
import { createMemoryRateWindows } from '../../edge/rate-windows/memory.ts';
import type { EdgeOptions } from '../../http/admission.ts';
import { BASE_PATH, createApi } from '../../http/app.ts';
import { createCursors } from '../../http/cursor.ts';
import { certificateFiles, readCertificate, watchCertificate } from '../../http/server/certificate.ts';
import { createServer } from '../../http/server/server.ts';
import { configuredPresigner } from '../../images/presign.ts';
import { urlHost } from '../../listen.ts';
import type { Log } from '../../log.ts';
import type { Availability } from '../../ops/availability.ts';
import type { Metrics } from '../../ops/metrics.ts';

/** How long requests in progress may take when the service stops. */
const GRACE_MS = 10_000;
const CURSOR_PURPOSE = 'cursors';

export interface ApiParts {
  readonly config: Config;
  readonly engines: Engines;
  readonly directory: AccessDirectory;
  readonly availability: Availability;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly clock: Clock;
}

export interface RunningApi {
  /** Base address of the endpoint. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts the public listener with the pull API behind it. */
export async function startApi(parts: ApiParts): Promise<RunningApi> {
  const { config, engines, directory, availability, metrics, log, clock } = parts;
  const masterKeys = openMasterKeys(config);
  const proxies = config.FUEL_TRUSTED_PROXIES ?? [];
  const terminated = config.FUEL_TLS === 'terminated';
  const handler = createApi({
    environment: config.FUEL_ENVIRONMENT,
    directory,
    availability: () => availability.state(),
    edge: edgeOptions(config, engines),
    proxies,
    tlsTerminated: terminated,
    view: engines.view(),
    presigner: configuredPresigner(config),
    cursors: createCursors(masterKeys.deriveKeys(CURSOR_PURPOSE)),
    clock,
    metrics,
    log,
  });
  const files = terminated ? undefined : await certificateFiles(config, log);
  const tls = files
    ? ({ kind: 'served', pem: readCertificate(files), proxies } as const)
    : ({ kind: 'terminated', proxies } as const);
  const server = createServer({
    handler,
    tls,
    log,
    onTurnedAway: (reason) => metrics.connectionsTurnedAway.inc({ reason }),
  });
  const { port } = await server.listen(config.FUEL_LISTEN);
  const watch = files && watchCertificate(files, log, (pem) => server.reload(pem));
  return {
    url: `${terminated ? 'http' : 'https'}://${urlHost(config.FUEL_LISTEN.host)}:${port}${BASE_PATH}`,
    async stop() {
      watch?.stop();
      await server.stop(GRACE_MS);
    },
  };
}

function edgeOptions(config: Config, engines: Engines): EdgeOptions {
  if (config.FUEL_EDGE === 'external') return { kind: 'external', tokens: config.FUEL_EDGE_TOKEN ?? [] };
  return {
    kind: 'embedded',
    windows: {
      keys: engines.rateWindows(),
      unproven: createMemoryRateWindows({ maxIds: MAX_UNPROVEN_KEYS }),
    },
  };
}
