import { projectTransaction, RecordFault } from '../../projections/transactions.ts';
import { isTransactionEventType, transactionStream } from '../domain/transaction-events.ts';
import { decode } from '../event-store/codec.ts';
import type { RecordedEvent } from '../event-store/event-store.ts';
import type { ViewChange } from './transactions-view.ts';

/** What a recorded event does to the view; an event that can't be shown is set aside with the reason. */
export function projectEvent(event: RecordedEvent): ViewChange {
  const { position, stream, type, revision } = event;
  const setAside = (reason: string): ViewChange => ({ position, stream, type, revision, setAside: reason });
  const decoded = decode(event);
  if (!decoded.ok) return setAside(decoded.reason);
  if (!isTransactionEventType(decoded.type))
    return setAside(`${type} does not belong in a transaction's stream`);
  try {
    const change = projectTransaction(decoded.type, decoded.data, revision);
    const id = change.kind === 'show' ? change.row.id : change.id;
    // The rows are guarded by the revision of their own stream: an event of another id would break that.
    if (stream !== transactionStream(id))
      return setAside(`transaction_id ${id} does not belong in ${stream}`);
    return { position, stream, type, change };
  } catch (error) {
    if (error instanceof RecordFault) return setAside(error.message);
    throw error;
  }
}
