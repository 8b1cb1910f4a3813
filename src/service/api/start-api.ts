import type { AccessDirectory } from '../../accounts/caller.ts';
import type { Clock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import { claimPort, urlHost } from '../../base/listen.ts';
import type { Log } from '../../base/log.ts';
import type { Engines } from '../../engines/engines.ts';
import { BASE_PATH } from '../../pull/app.ts';
import { certificateFiles, readCertificate, watchCertificate } from '../../pull/server/certificate.ts';
import type { Availability } from '../ops/availability.ts';
import type { Metrics } from '../ops/metrics.ts';
import { createApiServer, GRACE_MS } from './api-server.ts';
import { type ApiThreads, sharedApi } from './api-threads.ts';

export interface ApiParts {
  readonly config: Config;
  readonly engines: Engines;
  readonly directory: AccessDirectory;
  readonly availability: Pick<Availability, 'state'>;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly clock: Clock;
  /** Besides the main thread; `undefined` where it answers alone. */
  readonly threads: ApiThreads | undefined;
}

export interface RunningApi {
  /** Base address of the endpoint. */
  readonly url: string;
  /** Rejects when one of its threads ends; stays pending while they work. */
  readonly failed: Promise<never>;
  stop(): Promise<void>;
}

/** Starts the public listener with the pull API behind it, in the main thread and in the further ones. */
export async function startApi(parts: ApiParts): Promise<RunningApi> {
  const { config, availability, log, threads } = parts;
  const files = config.FUEL_TLS === 'terminated' ? undefined : await certificateFiles(config, log);
  const pem = files && readCertificate(files);
  const shared = threads && sharedApi();
  const server = createApiServer({ ...parts, availability: () => availability.state(), pem, shared });
  const { host } = config.FUEL_LISTEN;
  const claimed = threads === undefined ? config.FUEL_LISTEN : await claimPort(config.FUEL_LISTEN);
  const { port } = await server.listen(claimed);
  const stop = async (): Promise<void> => {
    await Promise.all([server.stop(GRACE_MS), threads?.stop()]);
  };
  if (threads !== undefined && shared !== undefined) {
    try {
      await threads.start({ address: { host, port }, pem, shared });
    } catch (error) {
      await stop();
      throw error;
    }
  }
  const watch =
    files &&
    watchCertificate(files, log, (renewed) => {
      server.reload(renewed);
      threads?.reload(renewed);
    });
  return {
    url: `${files === undefined ? 'http' : 'https'}://${urlHost(host)}:${port}${BASE_PATH}`,
    failed: threads?.failed ?? new Promise<never>(() => undefined),
    async stop() {
      watch?.stop();
      await stop();
    },
  };
}
