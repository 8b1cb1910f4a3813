import {
  idOfChange,
  projectTransaction,
  RecordFault,
  type RowState,
  stateAfter,
  type TransactionChange,
  transition,
} from '../../../projections/transactions.ts';
import { reasonOf } from '../../base/errors.ts';
import {
  isTransactionEventType,
  transactionIdOf,
  transactionStream,
} from '../../domain/transaction-events.ts';
import { decode } from '../../event-store/codec.ts';
import { isErasure, type Position, type RecordedEvent } from '../../event-store/recorded-event.ts';

/** What one event does to the view, with its position; or why it is parked. */
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

export function projectEvent(event: RecordedEvent): ViewChange {
  const { position, stream, type, revision } = event;
  const parked = (reason: string): ViewChange => ({ position, stream, type, revision, parkReason: reason });
  if (isErasure(event)) {
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
    // A row is guarded by the revision of its own stream, so another stream's event must not change it.
    if (stream !== transactionStream(id)) return parked(`transaction_id ${id} does not belong in ${stream}`);
    return { position, stream, type, change };
  } catch (error) {
    // One event must not block the others, whatever is wrong with it.
    return parked(error instanceof RecordFault ? error.message : reasonOf(error));
  }
}

/** What an event of a transaction did to the view. */
export type Effect =
  | { readonly kind: 'shown' | 'hidden' | 'no change' }
  | { readonly kind: 'parked'; readonly reason: string };

/** Folds one transaction's events into its row, as every view does. One that can't follow changes nothing: it is parked. */
export class RowFold {
  #state: RowState | undefined;

  constructor(before?: RowState) {
    this.#state = before;
  }

  /** `undefined` before the first event that was applied. */
  get state(): RowState | undefined {
    return this.#state;
  }

  apply(projected: ViewChange): Effect {
    if ('parkReason' in projected) return { kind: 'parked', reason: projected.parkReason };
    const { change } = projected;
    const verdict = transition(this.#state, change);
    if (verdict === 'stale') return { kind: 'no change' };
    if (verdict !== 'apply') return { kind: 'parked', reason: verdict.illegal };
    this.#state = stateAfter(change);
    return { kind: change.kind === 'show' ? 'shown' : 'hidden' };
  }
}
