import { parentPort, workerData } from 'node:worker_threads';
import type { SharedRows } from '../../accounts/directory/rows/shared-rows.ts';
import { systemClock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import { createLog } from '../../base/log.ts';
import { openEngines } from '../../engines/engines.ts';
import type { AttemptReport } from '../ops/delivery-metrics.ts';
import { watchLoopDelay } from '../ops/loop-delay.ts';
import { AttemptMeter } from './attempt-meter.ts';
import { configInThread } from './config-in-thread.ts';
import { runWebhooks } from './run-webhooks.ts';

export interface WebhooksThreadData {
  readonly config: Config;
  readonly holder: string;
  /** What the main thread's directory has started from, if anything. */
  readonly directory: SharedRows | undefined;
}

/** What the thread reports to the main thread. */
export type WebhooksThreadMessage =
  | { readonly kind: 'caught up' | 'connected' }
  | { readonly kind: 'moved'; readonly position: number }
  /** Every second. */
  | { readonly kind: 'counted'; readonly attempts: AttemptReport; readonly loopDelayMs: number };

/** The webhooks' thread: receivers have half a second to answer, and the API must not delay the measurement. */
const { config: given, holder, directory } = workerData as WebhooksThreadData;
const config = configInThread(given);
const stopping = new AbortController();
parentPort?.once('message', () => stopping.abort());
const post = (message: WebhooksThreadMessage): void => parentPort?.postMessage(message);

const log = createLog(config.FUEL_LOG_LEVEL, { role: 'webhooks' });
const meter = new AttemptMeter();
const loop = watchLoopDelay((loopDelayMs) => post({ kind: 'counted', attempts: meter.take(), loopDelayMs }));
const engines = await openEngines(config, systemClock, log);
try {
  await runWebhooks({
    config,
    engines,
    log,
    holder,
    directory,
    signal: stopping.signal,
    onCaughtUp: () => post({ kind: 'caught up' }),
    onConnected: () => post({ kind: 'connected' }),
    onMoved: (position) => post({ kind: 'moved', position }),
    meter,
  });
} finally {
  loop.stop();
  post({ kind: 'counted', attempts: meter.take(), loopDelayMs: 0 });
  await engines.close();
  parentPort?.close();
}
