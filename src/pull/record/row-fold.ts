import { type RowState, stateAfter, transition } from '../../../projections/transactions.ts';
import type { ViewChange } from './project-event.ts';

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
