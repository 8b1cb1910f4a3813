import { parentPort, workerData } from 'node:worker_threads';
import { loadDirectory } from '../../accounts/directory/load-directory.ts';
import { systemClock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import { createLog } from '../../base/log.ts';
import { openEngines } from '../../engines/engines.ts';
import { verifyLastDays } from '../verify/verify-last-days.ts';
import { DAY_MS } from './day.ts';

export interface NightlyThreadData {
  readonly config: Config;
}

/** One nightly verification in its own thread: any message stops it. Posts what it repaired. */
const { config } = workerData as NightlyThreadData;
const stopping = new AbortController();
parentPort?.once('message', () => stopping.abort());
const log = createLog(config.FUEL_LOG_LEVEL, { role: 'agreement' });
const engines = await openEngines(config, systemClock, log);
try {
  const store = engines.store();
  const directory = await loadDirectory(store, engines.directory());
  const repaired = await verifyLastDays({
    store,
    view: engines.view(),
    queue: () => engines.queue(),
    accountIds: [...directory.accounts()].map(({ id }) => id),
    clock: systemClock,
    environment: config.FUEL_ENVIRONMENT,
    retentionMs: config.FUEL_DELIVERY_RETENTION_DAYS * DAY_MS,
    author: { actor: 'system', command: 'nightly verification' },
    log,
    signal: stopping.signal,
  });
  parentPort?.postMessage(repaired);
} catch (error) {
  if (!stopping.signal.aborted) throw error;
} finally {
  await engines.close();
  parentPort?.close();
}
