import {
  idOfChange,
  projectTransaction,
  type RowState,
  stateAfter,
  type TransactionChange,
} from '../../projections/transactions.ts';
import { reasonOf } from '../base/errors.ts';
import { judgeTransaction, NO_TRANSACTION, type TransactionState } from '../domain/transaction.ts';
import {
  isTransactionEventType,
  type TransactionEvent,
  transactionIdOf,
  transactionStream,
} from '../domain/transaction-events.ts';
import { RecordFault } from '../domain/values/printed.ts';
import { decode } from '../event-store/codec.ts';
import type { EventStore } from '../event-store/event-store.ts';
import { readInParts } from '../event-store/reads.ts';
import {
  ERASED_REVISION,
  isErasure,
  type Position,
  type RecordedEvent,
  STREAM_ERASED,
} from '../event-store/recorded-event.ts';

/** The change that one event makes to the view, with the event's position, or the reason why it is parked. */
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

/** The change of an event, with the event as it is judged; there is none of an erasure, which may follow any event. */
export type Projected = ViewChange & { readonly judged?: TransactionEvent };

/** Returns the change of an event, whatever the events before it are. */
export function projectEvent(event: RecordedEvent): Projected {
  const { position, stream, type, revision } = event;
  const parked = (reason: string): ViewChange => toPark(event, reason);
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
    const judged = { type: decoded.type, data: decoded.data } as TransactionEvent;
    return { position, stream, type, change, judged };
  } catch (error) {
    // One event must not block the others, whatever is wrong with it.
    return parked(error instanceof RecordFault ? error.message : reasonOf(error));
  }
}

/** Returns the change that leaves a tombstone, which no event replaces, and no parked events. */
export function erasureOf(id: number): ViewChange {
  const change = { kind: 'erase', revision: ERASED_REVISION, id } as const;
  return { position: 0, stream: transactionStream(id), type: STREAM_ERASED, change };
}

/**
 * Returns the changes of a batch of events, each judged by the earlier events of its stream, which is read only if the batch
 * does not have them. An event that changes nothing
 * is left out, and one that can't follow those before it is marked to be parked. Rejects as the store does.
 */
export async function changesOf(
  store: Pick<EventStore, 'readStreams'>,
  events: readonly RecordedEvent[],
): Promise<ViewChange[]> {
  const judged = new Map<RecordedEvent, ViewChange | undefined>();
  const partly = new Map<string, readonly RecordedEvent[]>();
  const judge = (later: readonly RecordedEvent[], history: readonly RecordedEvent[]): void => {
    for (const [event, change] of judgedIn(history, later)) if (event.revision > 0) judged.set(event, change);
  };
  for (const [stream, own] of Map.groupBy(events, (event) => event.stream)) {
    const later = own.filter(({ revision }) => revision > 0);
    if (later.length === 0) continue;
    if (isFromTheStart(own)) judge(later, own);
    else partly.set(stream, later);
  }
  for await (const [stream, history] of readInParts(store, [...partly.keys()]))
    judge(partly.get(stream) ?? [], history);
  return events.flatMap((event) => (judged.has(event) ? (judged.get(event) ?? []) : projectEvent(event)));
}

/** Says whether these events of a stream are all of it up to the last of them, so that it need not be read. */
function isFromTheStart(own: readonly RecordedEvent[]): boolean {
  const revisions = new Set(own.map(({ revision }) => revision));
  return own.every(({ revision }) => revision < revisions.size);
}

/**
 * Returns the change of one event, judged as in `changesOf`, or `undefined` if it changes nothing. Both channels decide by
 * it, so they agree on which events count.
 */
export function judgeEvent(event: RecordedEvent, history: readonly RecordedEvent[]): ViewChange | undefined {
  if (event.revision === 0) return projectEvent(event);
  return judgedIn(history, [event]).find(([each]) => each === event)?.[1];
}

/** Returns the changes of a whole stream, judged as in `changesOf`. */
export function changesIn(history: readonly RecordedEvent[]): ViewChange[] {
  return judgedIn(history, history).flatMap(([, change]) => change ?? []);
}

/**
 * Returns these events of a stream with their changes. `history` is the stream as it is now, which may have other events
 * at their revisions.
 */
function judgedIn(
  history: readonly RecordedEvent[],
  events: readonly RecordedEvent[],
): [RecordedEvent, ViewChange | undefined][] {
  const own = new Map(events.map((event) => [event.revision, event]));
  const others = history.filter(({ revision }) => !own.has(revision));
  const fold = new TransactionFold();
  return [...others, ...events]
    .sort((a, b) => a.revision - b.revision)
    .map((event) => {
      const projected = projectEvent(event);
      const effect = fold.apply(projected);
      if (effect.kind === 'parked') return [event, toPark(event, effect.reason)];
      return [event, effect.kind === 'no change' ? undefined : projected];
    });
}

function toPark({ position, stream, type, revision }: RecordedEvent, parkReason: string): ViewChange {
  return { position, stream, type, revision, parkReason };
}

/** The effect that an event of a transaction had on the view. */
export type Effect =
  | { readonly kind: 'shown' | 'hidden' | 'no change' }
  | { readonly kind: 'parked'; readonly reason: string };

/**
 * Folds the events of one transaction into its state and its row, for import, view, fan-out and verification alike. An event that
 * does not fit, or can't follow those before it, is parked and changes nothing.
 */
export class TransactionFold {
  #state: TransactionState = NO_TRANSACTION;
  #row: RowState | undefined;

  get state(): TransactionState {
    return this.#state;
  }

  /** `undefined` before the first event that was applied. */
  get row(): RowState | undefined {
    return this.#row;
  }

  apply(projected: Projected): Effect {
    if ('parkReason' in projected) return { kind: 'parked', reason: projected.parkReason };
    const { change, judged } = projected;
    if (judged !== undefined) {
      const judgement = judgeTransaction(this.#state, judged);
      if (judgement.kind === 'unchanged') return { kind: 'no change' };
      if (judgement.kind === 'refused') return { kind: 'parked', reason: judgement.reason };
      this.#state = judgement.state;
    }
    this.#row = stateAfter(change);
    return { kind: change.kind === 'show' ? 'shown' : 'hidden' };
  }
}
