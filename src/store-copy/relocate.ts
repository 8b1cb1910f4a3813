import type { StoredDelivery } from '../deliveries/queue/log-copy.ts';
import { transactionStream } from '../domain/transaction-events.ts';
import type { EventStore, Position } from '../event-store/event-store.ts';
import { readInParts } from '../event-store/read-in-parts.ts';

const RECORDINGS = new Set(['TransactionConfirmed', 'ExternalTransactionRecorded']);
/** Of a delivery whose transaction was erased: before everything; it is never attempted again. */
const NOWHERE: Position = 0;

/** The deliveries, each at the position that its transaction's event has in `store`. */
export async function relocated(
  deliveries: readonly StoredDelivery[],
  store: EventStore,
): Promise<readonly StoredDelivery[]> {
  const ids = [...new Set(deliveries.map(({ transactionId }) => transactionId))];
  const positions = new Map<string, Position | undefined>();
  for await (const [stream, events] of readInParts(store, ids.map(transactionStream))) {
    positions.set(stream, events.find(({ type }) => RECORDINGS.has(type))?.position);
  }
  return deliveries.map((delivery) => ({
    ...delivery,
    position: positions.get(transactionStream(delivery.transactionId)) ?? NOWHERE,
  }));
}
