import { parentPort, workerData } from 'node:worker_threads';
import { Directory } from '../../../projections/directory.ts';
import { LiveDirectory } from '../../accounts/directory/live-directory.ts';
import type { SharedRows } from '../../accounts/directory/rows/shared-rows.ts';
import { systemClock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import { createLog } from '../../base/log.ts';
import { openEngines } from '../../engines/engines.ts';
import type { Certificate } from '../../pull/server/certificate.ts';
import { ApiMeter, type ApiReport } from '../ops/api-meter.ts';
import { accessState } from '../ops/availability.ts';
import { watchLoopDelay } from '../ops/loop-delay.ts';
import { Standing } from '../ops/standing.ts';
import { configInThread } from '../roles/config-in-thread.ts';
import { createApiServer, GRACE_MS, type SharedApi } from './api-server.ts';
import { isMember } from './is-member.ts';

export interface ApiThreadData {
  readonly config: Config;
  readonly name: string;
  readonly address: { readonly host: string; readonly port: number };
  readonly pem: Certificate | undefined;
  readonly shared: SharedApi;
  readonly standing: SharedArrayBuffer;
  /** What the main thread's directory has started from, if anything. */
  readonly directory: SharedRows | undefined;
}

/** What the main thread sends, besides `stop`. */
export interface ReloadMessage {
  readonly pem: Certificate;
}

/** What the thread reports to the main thread. */
export type ApiThreadMessage =
  | { readonly kind: 'listening' }
  | { readonly kind: 'moved'; readonly position: number }
  /** Every second, and when its directory has caught up. */
  | {
      readonly kind: 'counted';
      readonly report: ApiReport;
      readonly loopDelayMs: number;
      readonly isReady: boolean;
    };

/** One more thread that answers the pull API: its own directory, view and listener on the port of the others. */
async function run(data: ApiThreadData): Promise<void> {
  const { config: given, name, address, pem, shared, standing: memory, directory: started } = data;
  const config = configInThread(given);
  const clock = systemClock;
  const log = createLog(config.FUEL_LOG_LEVEL, { role: 'api', thread: name });
  const post = (message: ApiThreadMessage): void => parentPort?.postMessage(message);
  const stopping = Promise.withResolvers<void>();
  parentPort?.on('message', (message: 'stop' | ReloadMessage) => {
    if (message === 'stop') stopping.resolve();
    else server.reload(message.pem);
  });

  const engines = await openEngines(config, clock, log);
  const following = new AbortController();
  let isCaughtUp = false;
  const live = new LiveDirectory({
    store: engines.store(),
    directory: new Directory(),
    shared: started,
    clock,
    log,
    signal: following.signal,
    onMoved(position) {
      post({ kind: 'moved', position });
      if (live.isCaughtUp === isCaughtUp) return;
      isCaughtUp = live.isCaughtUp;
      report(0);
    },
  });
  const standing = new Standing(memory);
  const state = () =>
    accessState({
      ...{ live, maxAgeMs: config.FUEL_DIRECTORY_MAX_AGE, standing },
      isMember: () => isMember({ standing, engines }, live.directory.position),
    });
  const meter = new ApiMeter();
  const report = (loopDelayMs: number): void =>
    post({ kind: 'counted', report: meter.take(), loopDelayMs, isReady: state() === 'ready' });
  const loop = watchLoopDelay(report);
  const { directory } = live;
  const parts = { config, engines, directory, availability: state, metrics: meter, log, clock };
  const server = createApiServer({ ...parts, pem, shared });
  const directoryEnded = live.run();
  try {
    await server.listen(address);
    post({ kind: 'listening' });
    await Promise.race([stopping.promise, directoryEnded]);
  } finally {
    await server.stop(GRACE_MS);
    following.abort();
    await directoryEnded.catch(() => undefined); // reported by the race
    loop.stop();
    report(0);
    await engines.close();
    parentPort?.close();
  }
}

await run(workerData as ApiThreadData);
