import type { Clock } from '../../../base/clock.ts';
import { FuelError } from '../../../base/errors.ts';
import type { DeliveryQueue, WorkListener, WorkSignal } from '../../../push/queue/delivery-queue.ts';
import { opening } from '../opening.ts';
import { memoryControl } from './control.ts';
import type { MemoryDeliveries } from './deliveries.ts';
import { memoryLaneReads, memoryReads } from './reads.ts';
import { memoryWork } from './work.ts';

const NAME = 'the delivery log';

/** The delivery log in the memory of one thread, for as long as that runs: several openings share it. */
export function openMemoryQueue(log: MemoryDeliveries, clock: Clock): DeliveryQueue {
  const listeners = new Set<WorkListener>();
  log.listeners.add(listeners);
  const changed: WorkSignal = {
    add(listener) {
      if (!log.listeners.has(listeners)) throw new FuelError('STORE_CLOSED', `${NAME} is closed`);
      listeners.add(listener);
    },
    remove: (listener) => void listeners.delete(listener),
  };
  const methods = {
    ...memoryWork(log, clock),
    ...memoryControl(log, clock),
    ...memoryReads(log),
    ...memoryLaneReads(log),
  };
  return opening(NAME, { changed, ...methods }, () => {
    log.listeners.delete(listeners);
    for (const listener of listeners) listener.notify();
  });
}
