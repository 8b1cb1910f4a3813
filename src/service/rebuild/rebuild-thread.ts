import { parentPort, workerData } from 'node:worker_threads';
import { openEngines } from '../../app.ts';
import { systemClock } from '../../clock.ts';
import type { Config } from '../../config/config.ts';
import { createLog, silentLog } from '../../log.ts';
import { retryWhileUnavailable } from '../../retry.ts';
import { applySegments } from '../../transactions/view/build/apply-segments.ts';
import { rebuildTransactions } from '../../transactions/view/build/rebuild.ts';

export interface RebuildThreadData {
  readonly config: Config;
  readonly holder: string;
  /** `segments`: of the build that is under way. `rendering`: a whole rebuild, since records are rendered otherwise now. */
  readonly task: 'segments' | 'rendering';
}

/** A thread that builds a view beside the served one. */
const { config, holder, task } = workerData as RebuildThreadData;
const stopping = new AbortController();
parentPort?.once('message', () => stopping.abort());

const { signal } = stopping;
/** A command's standard output is for its result. */
const log = task === 'segments' ? silentLog : createLog(config.FUEL_LOG_LEVEL, { role: 'rebuild' });
const engines = await openEngines(config, systemClock, log);
const parts = {
  store: engines.store(),
  view: engines.view(),
  coordination: engines.coordination(),
  clock: systemClock,
  log,
  holder,
  signal,
};
try {
  if (task === 'rendering') {
    log.info('records are rendered otherwise now: a new view is built, and this one is served until then');
    const author = { actor: 'system', command: 'fuel serve' };
    const reason = 'records are rendered otherwise now';
    const retry = { log, signal, component: 'rebuild' };
    const result = await retryWhileUnavailable(
      (onProgress) => rebuildTransactions({ ...parts, author, reason, accept: true, onProgress }),
      retry,
    );
    if (result?.outcome === 'switched') log.info({ position: result.position }, 'the new view is served');
  } else {
    const build = await parts.view.builds.current();
    if (build !== undefined) await applySegments({ ...parts, build });
  }
} finally {
  await engines.close();
  parentPort?.close();
}
