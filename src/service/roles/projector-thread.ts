import { parentPort, workerData } from 'node:worker_threads';
import { openEngines } from '../../app.ts';
import { systemClock } from '../../clock.ts';
import type { Config } from '../../config/config.ts';
import { createLog } from '../../log.ts';
import { watchLoopDelay } from '../../ops/loop-delay.ts';
import { runProjector } from '../../transactions/view/projector.ts';
import { runRebuildThread } from '../rebuild/rebuild-workers.ts';

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
let rebuilding: Promise<void> | undefined;

/** In another thread, so that this one keeps the served view up to date. A failure leaves that view served. */
function rebuild(): void {
  const data = { config, holder: `${holder}-rebuild`, task: 'rendering' } as const;
  rebuilding ??= runRebuildThread(data, stopping.signal).catch((error: unknown) => {
    log.error({ err: error }, 'the new view could not be built: run fuel projection rebuild transactions');
  });
}

const loop = watchLoopDelay((loopDelayMs) => parentPort?.postMessage({ loopDelayMs }));
const engines = await openEngines(config, systemClock, log);
try {
  await runProjector({
    store: engines.store(),
    view: engines.view(),
    coordination: engines.coordination(),
    clock: systemClock,
    log,
    holder,
    signal: stopping.signal,
    gatherMs: config.MONGODB_URL === undefined ? 0 : GATHER_MS,
    onOlderRendering: rebuild,
  });
} finally {
  stopping.abort();
  await rebuilding;
  loop.stop();
  await engines.close();
  parentPort?.close();
}
