import {
  type RowState,
  stateAfter,
  type TransactionRow,
  transition,
} from '../../../projections/transactions.ts';
import type { ViewChange } from './project-event.ts';

/** What an event of a transaction did to the view. */
export type Effect =
  | { readonly kind: 'shown' | 'hidden' | 'no change' }
  | { readonly kind: 'parked'; readonly reason: string };

const SHOWN: Effect = { kind: 'shown' };
const HIDDEN: Effect = { kind: 'hidden' };
const NO_CHANGE: Effect = { kind: 'no change' };

/** Folds one transaction's events as the view applies them. One that can't follow changes nothing: it is parked. */
export class RowFold {
  #state: RowState | undefined;
  #row: TransactionRow | undefined;

  /** `undefined` before the first event that was applied. */
  get revision(): number | undefined {
    return this.#state?.revision;
  }

  /** What customers see now; `undefined` where it is not shown. */
  get row(): TransactionRow | undefined {
    return this.#row;
  }

  apply(projected: ViewChange): Effect {
    if ('parkReason' in projected) return { kind: 'parked', reason: projected.parkReason };
    const { change } = projected;
    const verdict = transition(this.#state, change);
    if (verdict === 'stale') return NO_CHANGE;
    if (verdict !== 'apply') return { kind: 'parked', reason: verdict.illegal };
    this.#state = stateAfter(change);
    this.#row = change.kind === 'show' ? change.row : undefined;
    return this.#row === undefined ? HIDDEN : SHOWN;
  }
}
