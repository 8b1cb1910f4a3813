import {
  type RowState,
  stateAfter,
  type TransactionRow,
  transition,
} from '../../projections/transactions.ts';
import { recordedAtMs } from '../event-store/codec.ts';
import type { RecordedEvent } from '../event-store/event-store.ts';
import { projectEvent } from './project-event.ts';

/** What an event of a transaction did to the view. */
export type Effect =
  | { readonly kind: 'shown' | 'hidden' | 'no change' }
  | { readonly kind: 'parked'; readonly reason: string };

export interface AppliedEvent {
  readonly event: RecordedEvent;
  readonly effect: Effect;
  /** What customers see after it. */
  readonly row: TransactionRow | undefined;
}

/** A transaction's events in order, with what each did. */
export function effectsOf(events: readonly RecordedEvent[]): AppliedEvent[] {
  let state: RowState | undefined;
  let row: TransactionRow | undefined;
  return events.map((event) => {
    const projected = projectEvent(event);
    if ('parkReason' in projected) {
      return { event, effect: { kind: 'parked', reason: projected.parkReason }, row };
    }
    const { change } = projected;
    const verdict = transition(state, change);
    if (verdict === 'stale') return { event, effect: { kind: 'no change' }, row };
    if (verdict !== 'apply') return { event, effect: { kind: 'parked', reason: verdict.illegal }, row };
    state = stateAfter(change);
    row = change.kind === 'show' ? change.row : undefined;
    return { event, effect: { kind: row === undefined ? 'hidden' : 'shown' }, row };
  });
}

/** What customers saw at a time; `undefined` where it was not shown. */
export function rowAt(applied: readonly AppliedEvent[], atMs: number): TransactionRow | undefined {
  return applied.findLast(({ event }) => recordedAtMs(event) <= atMs)?.row;
}

/** A record's text with the photos' names in the store in place of URLs, which only a request makes. */
export function archivedText({ head, mobileNumber, fees, pump, odometer }: TransactionRow): string {
  const mobile = mobileNumber === null ? '' : `,"mobile_number":${mobileNumber}`;
  return `${head}${mobile}},"fees":${fees},"images":${JSON.stringify({ pump, odometer })}}`;
}
