import { idOfChange, type RowState, type TransactionChange } from '../../../projections/transactions.ts';
import { transactionStream } from '../../domain/transaction-events.ts';
import { ERASED_REVISION } from '../../event-store/recorded-event.ts';
import { RowFold, type ViewChange } from '../../pull/record/project-event.ts';
import type { ParkedTransactionEvent } from '../../pull/view/checkpoint.ts';

export type KnownChange = Extract<ViewChange, { readonly change: TransactionChange }>;
/** By transaction, in the order of the batch. */
export type Histories = Map<number, KnownChange[]>;

/** What a batch does to each row, and its events that can't be read. */
export function groupChanges(
  changes: readonly ViewChange[],
  parkedAtMs: number,
): { readonly histories: Histories; readonly unreadable: ParkedTransactionEvent[] } {
  const known = changes.filter((change) => 'change' in change);
  return {
    histories: Map.groupBy(known, ({ change }) => idOfChange(change)),
    unreadable: changes.flatMap((change) =>
      'parkReason' in change ? [parkedEvent(change, change.parkReason, parkedAtMs)] : [],
    ),
  };
}

export interface FoldedHistory {
  /** `undefined` where nothing changes. */
  readonly state: RowState | undefined;
  readonly parked: readonly ParkedTransactionEvent[];
}

/** What the changes of one transaction make of its row, and those of them that can't follow what was there. */
export function foldHistory(
  before: RowState | undefined,
  history: readonly KnownChange[],
  parkedAtMs: number,
): FoldedHistory {
  const fold = new RowFold(before);
  const parked: ParkedTransactionEvent[] = [];
  for (const change of history) {
    const effect = fold.apply(change);
    if (effect.kind === 'parked') parked.push(parkedEvent(change, effect.reason, parkedAtMs));
  }
  return { state: fold.state === before ? undefined : fold.state, parked };
}

/** The state of a row that begins with these changes; `undefined` where one may have to be judged by what is there. */
export function freshState(history: readonly KnownChange[]): RowState | undefined {
  if (history[0]?.change.kind !== 'show') return undefined; // a void is folded once, onto what is there
  const { state, parked } = foldHistory(undefined, history, 0);
  return parked.length === 0 ? state : undefined;
}

/** The last change of a transaction, which no other follows. */
export function erasure(id: number): KnownChange {
  const change = { kind: 'erase', revision: ERASED_REVISION, id } as const;
  return { position: 0, stream: transactionStream(id), type: 'erase', change };
}

function parkedEvent(change: ViewChange, reason: string, parkedAtMs: number): ParkedTransactionEvent {
  const { position, stream, type } = change;
  const revision = 'parkReason' in change ? change.revision : change.change.revision;
  return { position, stream, revision, type, reason, parkedAtMs };
}
