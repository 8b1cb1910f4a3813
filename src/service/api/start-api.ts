import { claimPort, urlHost } from '../../base/listen.ts';
import { BASE_PATH } from '../../pull/app.ts';
import { certificateFiles, readCertificate, watchCertificate } from '../../pull/server/certificate.ts';
import type { ThreadHost } from '../threads/job.ts';
import { youngMb } from '../threads/memory.ts';
import type { ApiJobData } from './api-job.ts';
import { type ApiServerParts, createApiServer, GRACE_MS } from './api-server.ts';
import { type ApiThreadName, type ApiThreadReports, sharedApi, startApiThread } from './api-threads.ts';

export interface ApiParts extends Omit<ApiServerParts, 'pem' | 'shared'> {
  readonly host: ThreadHost;
  /** Besides the main one, which answers too. */
  readonly threads: readonly ApiThreadName[];
  /** For them. */
  readonly ofThreads: Pick<ApiJobData, 'standing' | 'directory'> & ApiThreadReports;
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
 * listen; when one fails before, stops the others and rejects with its error.
 */
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
  const data = { ...ofThreads, address: { host, port }, pem, shared, youngMb: youngMb(engines) };
  const threads = names.map((name) => startApiThread(threadHost, name, data));
  const failed = Promise.race(threads.map((thread) => thread.failed));
  const stop = async (): Promise<void> => {
    await Promise.all([server.stop(GRACE_MS), ...threads.map((thread) => thread.stop())]);
  };
  try {
    await Promise.race([failed, Promise.all(threads.map(({ listening }) => listening))]);
  } catch (error) {
    await stop();
    throw error;
  }
  const watch =
    files &&
    watchCertificate(files, log, (renewed) => {
      server.reload(renewed);
      for (const thread of threads) thread.tell(renewed);
    });
  return {
    url: `${files === undefined ? 'http' : 'https'}://${urlHost(host)}:${port}${BASE_PATH}`,
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
