import { setTimeout as sleep } from 'node:timers/promises';
import { transactionStream } from '../../src/domain/transaction-events.ts';
import type { EventStore } from '../../src/event-store/event-store.ts';
import { newEvent } from '../../src/event-store/new-event.ts';
import { machineTimeMs } from './machine-time.ts';
import type { WebhookTransaction } from './webhook-sample.ts';

/**
 * Appends one transaction after the other at an even rate. Returns the moment of each call of `append`, by the
 * machine's clock, by the id of the delivery that is owed.
 */
export async function appendSteadily(
  store: EventStore,
  transactions: readonly WebhookTransaction[],
  { perSecond }: { readonly perSecond: number },
): Promise<ReadonlyMap<string, number>> {
  const appendedAtMs = new Map<string, number>();
  const startedAtMs = machineTimeMs();
  for (const { id, event, deliveryId } of transactions) {
    const dueAtMs = startedAtMs + (appendedAtMs.size * 1_000) / perSecond;
    const waitMs = dueAtMs - machineTimeMs();
    if (waitMs > 0) await sleep(waitMs);
    const appended = newEvent(event, { actor: 'bench', command: 'bench' }, Date.now());
    appendedAtMs.set(deliveryId, machineTimeMs());
    const stream = transactionStream(id);
    const [result] = await store.append([{ stream, expected: 'none', events: [appended] }]);
    if (result?.kind !== 'appended') throw new Error(`transaction ${id} was not recorded`);
  }
  return appendedAtMs;
}
