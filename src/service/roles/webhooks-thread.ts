import { parentPort, workerData } from 'node:worker_threads';
import { openEngines } from '../../app.ts';
import { systemClock } from '../../clock.ts';
import type { Config } from '../../config/config.ts';
import { createLog } from '../../log.ts';
import { runWebhooks } from './run-webhooks.ts';

export interface WebhooksThreadData {
  readonly config: Config;
  readonly holder: string;
}

/** What the thread tells the one that started it. */
export type WebhooksThreadNews =
  | { readonly kind: 'connected' }
  | { readonly kind: 'moved'; readonly position: number };

/** The webhooks' thread: it times receivers by the half second, and nothing of the API may delay that. */
const { config: given, holder } = workerData as WebhooksThreadData;
const config: Config = {
  ...given,
  FUEL_MASTER_KEY: given.FUEL_MASTER_KEY?.map((key) => Buffer.from(key)), // it arrives as plain bytes
};
const stopping = new AbortController();
parentPort?.once('message', () => stopping.abort());
const tell = (news: WebhooksThreadNews): void => parentPort?.postMessage(news);

const log = createLog(config.FUEL_LOG_LEVEL, { role: 'webhooks' });
const engines = await openEngines(config, systemClock, log);
try {
  await runWebhooks({
    config,
    engines,
    log,
    holder,
    signal: stopping.signal,
    onConnected: () => tell({ kind: 'connected' }),
    onMoved: (position) => tell({ kind: 'moved', position }),
  });
} finally {
  await engines.close();
  parentPort?.close();
}
