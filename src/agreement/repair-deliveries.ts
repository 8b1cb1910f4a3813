import type { Clock } from '../clock.ts';
import type { DeliveryQueue, NewDelivery } from '../deliveries/queue/delivery-queue.ts';
import { OPERATIONS_STREAM, type OperationsEvent } from '../domain/operations-events.ts';
import { transactionStream } from '../domain/transaction-events.ts';
import { formatDateTime } from '../domain/values/date-time.ts';
import { batchesOf, jsonBytes } from '../event-store/batch-bytes.ts';
import type { EventStore } from '../event-store/event-store.ts';
import { type Author, newEvent } from '../event-store/new-event.ts';
import { readInParts } from '../event-store/read-in-parts.ts';

const BATCH = 200;
const WITHDRAWALS = new Set(['TransactionVoided', 'TransactionCancelled']);

export interface RepairOptions {
  readonly store: EventStore;
  readonly queue: DeliveryQueue;
  readonly clock: Clock;
  readonly author: Author;
  readonly onProgress?: (stored: number) => void;
}

/**
 * Stores deliveries that are missing, due at once; those of transactions that were voided or cancelled are
 * stored as withdrawn. With `newLog` the log replaces the one that was lost. Both are recorded last, so that an
 * interrupted repair can be repeated.
 */
export async function repairDeliveries(
  missing: readonly NewDelivery[],
  { newLog }: { readonly newLog: boolean },
  { store, queue, clock, author, onProgress }: RepairOptions,
): Promise<void> {
  let stored = 0;
  for (const batch of batchesOf(missing, { most: BATCH, bytesOf: ({ record }) => jsonBytes(record) })) {
    for (const id of await withdrawnAmong(batch, store)) await queue.withdraw(id, clock.now());
    await queue.enqueue(batch);
    stored += batch.length;
    onProgress?.(stored);
  }
  const events: OperationsEvent[] = [];
  if (newLog) {
    const log = await queue.logId();
    const data = { log_id: log.id, started_at: formatDateTime(log.startedAtMs) };
    events.push({ type: 'DeliveryLogStarted', data });
  }
  if (missing.length > 0 || newLog) {
    events.push({ type: 'AgreementRepaired', data: { what: 'deliveries', repaired: missing.length } });
  }
  if (events.length === 0) return;
  const recorded = events.map((event) => newEvent(event, author, clock.now()));
  await store.append([{ stream: OPERATIONS_STREAM, expected: 'any', events: recorded }]);
}

/**
 * Those of the transactions that were voided or cancelled. Their streams say so, since a lost log has lost its
 * withdrawals too.
 */
export async function withdrawnAmong(
  deliveries: readonly NewDelivery[],
  store: EventStore,
): Promise<ReadonlySet<number>> {
  const idOf = new Map(
    deliveries.map(({ transactionId }) => [transactionStream(transactionId), transactionId]),
  );
  const withdrawn = new Set<number>();
  for await (const [stream, history] of readInParts(store, [...idOf.keys()])) {
    const id = idOf.get(stream);
    if (id !== undefined && history.some(({ type }) => WITHDRAWALS.has(type))) withdrawn.add(id);
  }
  return withdrawn;
}
