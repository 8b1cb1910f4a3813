import type { TransactionRow } from '../../../projections/transactions.ts';
import { recordedAtMs } from '../../event-store/codec.ts';
import type { RecordedEvent } from '../../event-store/event-store.ts';
import { projectEvent } from './project-event.ts';
import { type Effect, RowFold } from './row-fold.ts';

export interface AppliedEvent {
  readonly event: RecordedEvent;
  readonly effect: Effect;
  /** What customers see after it. */
  readonly row: TransactionRow | undefined;
}

/** A transaction's events in order, with what each did. */
export function effectsOf(events: readonly RecordedEvent[]): AppliedEvent[] {
  const fold = new RowFold();
  return events.map((event) => ({
    event,
    effect: fold.apply(projectEvent(event)),
    row: fold.state?.shown ?? undefined,
  }));
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
