import {
  idOfChange,
  projectTransaction,
  RecordFault,
  type TransactionChange,
} from '../../projections/transactions.ts';
import { isTransactionEventType, transactionIdOf, transactionStream } from '../domain/transaction-events.ts';
import { reasonOf } from '../errors.ts';
import { decode } from '../event-store/codec.ts';
import { type Position, type RecordedEvent, STREAM_ERASED } from '../event-store/event-store.ts';

/** One event's effect, with its place in the log. */
export type ViewChange =
  | {
      readonly position: Position;
      readonly stream: string;
      readonly type: string;
      readonly change: TransactionChange;
    }
  | {
      readonly position: Position;
      readonly stream: string;
      readonly type: string;
      readonly revision: number;
      readonly parkReason: string;
    };

/** What a recorded event does to the view; an event that can't be shown is parked with the reason. */
export function projectEvent(event: RecordedEvent): ViewChange {
  const { position, stream, type, revision } = event;
  const parked = (reason: string): ViewChange => ({ position, stream, type, revision, parkReason: reason });
  if (type === STREAM_ERASED) {
    const id = transactionIdOf(stream);
    if (id === undefined) return parked('it erases a stream that is not named after a transaction');
    return { position, stream, type, change: { kind: 'erase', revision, id } };
  }
  const decoded = decode(event);
  if (!decoded.ok) return parked(decoded.reason);
  if (!isTransactionEventType(decoded.type))
    return parked(`${type} does not belong in a transaction's stream`);
  try {
    const change = projectTransaction(decoded.type, decoded.data, revision);
    const id = idOfChange(change);
    // The rows are guarded by the revision of their own stream: an event of another id would break that.
    if (stream !== transactionStream(id)) return parked(`transaction_id ${id} does not belong in ${stream}`);
    return { position, stream, type, change };
  } catch (error) {
    // Whatever goes wrong with one event must not hold up the others.
    return parked(error instanceof RecordFault ? error.message : reasonOf(error));
  }
}
