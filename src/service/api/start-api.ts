import { claimPort, urlHost } from '../../base/listen.ts';
import { BASE_PATH } from '../../pull/app.ts';
import { certificateFiles, readCertificate, watchCertificate } from '../../pull/server/certificate.ts';
import type { ThreadHost } from '../threads/job.ts';
import { youngMb } from '../threads/memory.ts';
import { type ApiServerParts, createApiServer, GRACE_MS } from './api-server.ts';
import { type ApiThreadName, sharedApi, startApiThreads } from './api-threads.ts';

export interface ApiParts extends Omit<ApiServerParts, 'pem' | 'shared'> {
  readonly host: ThreadHost;
  /** Besides the main one, which answers too. */
  readonly threads: readonly ApiThreadName[];
  /** For them. */
  readonly ofThreads: Pick<
    Parameters<typeof startApiThreads>[2],
    'standing' | 'directory' | 'onMoved' | 'onMetrics'
  >;
}

export interface RunningApi {
  /** Base address of the endpoint. */
  readonly url: string;
  /** What further threads lack that can't judge access; `undefined`: nothing. */
  readonly missing: string | undefined;
  /** Rejects when one of its threads ends; stays pending while they work. */
  readonly failed: Promise<never>;
  stop(): Promise<void>;
}

/** Starts the public listener with the pull API behind it, in the main thread and in the further ones. */
export async function startApi(parts: ApiParts): Promise<RunningApi> {
  const { config, engines, log, host: threadHost, threads: names, ofThreads } = parts;
  const files = config.FUEL_TLS === 'terminated' ? undefined : await certificateFiles(config, log);
  const pem = files && readCertificate(files);
  const shared = names.length === 0 ? undefined : sharedApi();
  const server = createApiServer({ ...parts, pem, shared });
  const { host } = config.FUEL_LISTEN;
  const { port } = await server.listen(
    shared === undefined ? config.FUEL_LISTEN : await claimPort(config.FUEL_LISTEN),
  );
  const address = { host, port };
  const threads =
    shared &&
    (await startApiThreads(threadHost, names, {
      ...{ ...ofThreads, address, pem, shared },
      youngMb: youngMb(engines),
    }).catch(async (error: unknown) => {
      await server.stop(GRACE_MS);
      throw error;
    }));
  const watch =
    files &&
    watchCertificate(files, log, (renewed) => {
      server.reload(renewed);
      threads?.reload(renewed);
    });
  return {
    url: `${files === undefined ? 'http' : 'https'}://${urlHost(host)}:${port}${BASE_PATH}`,
    get missing() {
      return threads?.missing;
    },
    failed: threads?.failed ?? new Promise<never>(() => undefined),
    async stop() {
      watch?.stop();
      await Promise.all([server.stop(GRACE_MS), threads?.stop()]);
    },
  };
}
