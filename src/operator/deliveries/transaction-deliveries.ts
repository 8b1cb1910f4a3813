import type { Clock } from '../../base/clock.ts';
import type { Environment } from '../../domain/account-events.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import type { RecordedEvent } from '../../event-store/recorded-event.ts';
import { AccountHistory } from '../../push/fan-out/account-history.ts';
import { decideAsOf } from '../../push/fan-out/decide-event.ts';
import type { DeliverySummary } from '../../push/queue/delivery.ts';
import type { DeliveryReads } from '../../push/queue/delivery-queue.ts';
import { projectEvent } from '../../records/project-event.ts';

export interface TransactionDeliveries {
  readonly deliveries: readonly DeliverySummary[];
  /** The keys of the account that have no delivery, each with the reason. */
  readonly notSent: readonly { readonly key: string; readonly reason: string }[];
}

export interface TransactionDeliveriesOptions {
  readonly store: EventStore;
  readonly queue: Pick<DeliveryReads, 'page'>;
  readonly clock: Clock;
  readonly environment: Environment;
  readonly retentionMs: number;
}

/** Returns the deliveries of a transaction, and why the other keys of its account have none. `events` are its stream. */
export async function transactionDeliveries(
  transactionId: number,
  events: readonly RecordedEvent[],
  { store, queue, clock, environment, retentionMs }: TransactionDeliveriesOptions,
): Promise<TransactionDeliveries> {
  const { deliveries } = await queue.page({ transactionIds: [transactionId] }, { limit: Infinity });
  const [first] = events;
  const projected = first && projectEvent(first);
  if (first === undefined || projected === undefined || 'parkReason' in projected) {
    return { deliveries, notSent: [] };
  }
  const { change } = projected;
  if (change.kind !== 'show') return { deliveries, notSent: [] };
  const history = new AccountHistory({ store });
  const decided = await decideAsOf(first, change.row, { history, clock, environment, retentionMs });
  if ('unreadable' in decided) return { deliveries, notSent: [] };
  const sent = new Set(deliveries.map(({ prefix }) => prefix));
  const waiting = decided.owed.map(({ prefix }) => ({
    key: prefix,
    reason: 'it is owed and not queued yet',
  }));
  const notSent = [...decided.notSent, ...waiting].filter(({ key }) => !sent.has(key));
  return { deliveries, notSent };
}
