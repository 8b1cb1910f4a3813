import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../../src/base/clock.ts';
import type { DeliveryQueue } from '../../../src/push/queue/delivery-queue.ts';
import { claimOptions } from './deliveries.ts';

/** What the thread is given: the log that it opens, where it is asked, and what tells that it has answered. */
export interface ClaimerData {
  readonly log: ClaimedLog;
  readonly port: MessagePort;
  readonly answered: Int32Array<SharedArrayBuffer>;
}

export type ClaimedLog = { readonly path: string } | { readonly url: string; readonly database: string };

// A separate thread, which opens the log itself as another process does, and claims when it is asked.
const { log, port, answered } = workerData as ClaimerData;
const queue = await open();
await queue.logId(); // connected: what is asked for takes no longer than a claim
port.on('message', ({ nowMs, limit }: { readonly nowMs: number; readonly limit: number }) => {
  void claim(nowMs, limit).finally(() => {
    Atomics.store(answered, 0, 1);
    Atomics.notify(answered, 0);
  });
});
parentPort?.postMessage('ready');

async function open(): Promise<DeliveryQueue> {
  if ('path' in log) {
    const { openSqliteDeliveryQueue } = await import('../../../src/engines/sqlite/queue/queue.ts');
    return openSqliteDeliveryQueue({ path: log.path, clock: systemClock });
  }
  const { openMongoDeliveryQueue } = await import('../../../src/engines/mongodb/queue/queue.ts');
  const { MongoConnection } = await import('../../../src/engines/mongodb/driver/connection.ts');
  return openMongoDeliveryQueue({ connection: new MongoConnection(log), clock: systemClock });
}

async function claim(nowMs: number, limit: number): Promise<void> {
  const claimed = await queue.claim(claimOptions(nowMs, { holder: 'elsewhere', limit }));
  port.postMessage(claimed.map(({ id }) => id));
}
