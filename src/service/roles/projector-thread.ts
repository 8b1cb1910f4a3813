import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import { createLog } from '../../base/log.ts';
import { retryWhileUnavailable } from '../../base/retry.ts';
import { openEngines } from '../../engines/engines.ts';
import { rebuildTransactions } from '../../pull/view/build/rebuild.ts';
import { runProjector } from '../../pull/view/projector.ts';
import { watchLoopDelay } from '../ops/loop-delay.ts';

export interface ProjectorThreadData {
  readonly config: Config;
  readonly holder: string;
}

/** The longest delay of its event loop in the last second. */
export interface ProjectorThreadMessage {
  readonly loopDelayMs: number;
}

/** Pages show a transaction at most this much later under constant load. */
const GATHER_MS = 20;

/** The projector's thread: its synchronous reads and writes must not delay the API's event loop. */
const { config, holder } = workerData as ProjectorThreadData;
const stopping = new AbortController();
parentPort?.once('message', () => stopping.abort());

const log = createLog(config.FUEL_LOG_LEVEL, { role: 'projector' });
const loop = watchLoopDelay((loopDelayMs) => parentPort?.postMessage({ loopDelayMs }));
const engines = await openEngines(config, systemClock, log);
const parts = {
  store: engines.store(),
  view: engines.view(),
  coordination: engines.coordination(),
  clock: systemClock,
  log,
  signal: stopping.signal,
};
let rebuilding: Promise<void> | undefined;

/** Beside the projector, which keeps the served view up to date. A failure leaves that view served. */
async function rebuild(): Promise<void> {
  log.info('records are rendered otherwise now: a new view is built, and this one is served until then');
  const reason = 'records are rendered otherwise now';
  const author = { actor: 'system', command: 'fuel serve' };
  const options = { ...parts, holder: `${holder}-rebuild`, author, reason, accept: true };
  try {
    const retry = { log, signal: stopping.signal, component: 'rebuild' };
    const result = await retryWhileUnavailable(() => rebuildTransactions(options), retry);
    if (result?.outcome === 'switched') log.info({ position: result.position }, 'the new view is served');
  } catch (error) {
    log.error({ err: error }, 'the new view could not be built: run fuel projection rebuild transactions');
  }
}

try {
  await runProjector({
    ...parts,
    holder,
    gatherMs: config.MONGODB_URL === undefined ? 0 : GATHER_MS,
    onOlderRendering: () => {
      rebuilding ??= rebuild();
    },
  });
} finally {
  stopping.abort();
  await rebuilding;
  loop.stop();
  await engines.close();
  parentPort?.close();
}
