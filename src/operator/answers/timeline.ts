import type { TransactionRow } from '../../../projections/transactions.ts';
import { membersOf, printableData, recordedAt, recordedAtMs } from '../../event-store/codec.ts';
import type { RecordedEvent } from '../../event-store/recorded-event.ts';
import { type Effect, projectEvent, RowFold } from '../../pull/record/project-event.ts';
import type { Delivery } from '../../push/queue/delivery.ts';
import { type Cell, type Column, link, state, time } from './columns.ts';
import { attemptAnswer, attemptName, deliveryAnswer, outcomeText, resultOf } from './delivery.ts';

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

/** What customers saw of it at a time, by the events that were recorded until then. */
export function rowAt(applied: readonly AppliedEvent[], atMs: number): TransactionRow | undefined {
  return applied.findLast(({ event }) => recordedAtMs(event) <= atMs)?.row;
}

/** One thing that happened to a transaction, or is about to. */
export type TimelineEntry =
  | ReturnType<typeof eventEntry>
  | ReturnType<typeof notSentEntry>
  | ReturnType<typeof deliveryEntries>[number];

export interface TimelineParts {
  readonly applied: readonly AppliedEvent[];
  readonly deliveries: readonly Delivery[];
  readonly notSent: readonly { readonly key: string; readonly reason: string }[];
}

/** A transaction's events, deliveries and attempts in the order of time, with why keys got none. */
export function timelineOf({ applied, deliveries, notSent }: TimelineParts): readonly TimelineEntry[] {
  const decided = applied.find(({ effect }) => effect.kind === 'shown') ?? applied[0];
  const decidedAt = decided === undefined ? '' : recordedAt(decided.event);
  const entries: TimelineEntry[] = [
    ...applied.map(eventEntry),
    ...notSent.map((each) => notSentEntry(decidedAt, each)),
    ...deliveries.flatMap(deliveryEntries),
  ];
  return entries.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
}

function eventEntry({ event, effect }: AppliedEvent) {
  const reason = effect.kind === 'parked' ? effect.reason : null;
  const { type, revision } = event;
  return { at: recordedAt(event), what: 'event' as const, type, revision, effect: effect.kind, reason };
}

function notSentEntry(at: string, { key, reason }: TimelineParts['notSent'][number]) {
  return { at, what: 'not_sent' as const, key, reason };
}

function deliveryEntries(delivery: Delivery) {
  const { id, state: name, key, type, created_at, reason, due_at } = deliveryAnswer(delivery);
  const of = { key, delivery: id };
  const attempts = delivery.attempts.map((attempt) => {
    const { at, headers: _, ...outcome } = attemptAnswer(attempt);
    return { at, what: 'attempt' as const, ...of, ...outcome };
  });
  const made = { at: created_at, what: 'delivery' as const, ...of, type, state: name, reason };
  return [made, ...attempts, ...(due_at === null ? [] : [{ at: due_at, what: 'due' as const, ...of }])];
}

/** `hide` takes out of a reason what may not be shown. */
export function timelineColumns(
  applied: readonly AppliedEvent[],
  hide: (reason: string) => string,
): readonly Column<TimelineEntry>[] {
  const given = new Map(applied.map(({ event }) => [event.revision, reasonGiven(event)]));
  const why = (reason: string | null | undefined): string => (typeof reason === 'string' ? hide(reason) : '');
  const details = (entry: TimelineEntry): Cell => {
    switch (entry.what) {
      case 'event':
        return [entry.type, state(entry.effect), why(entry.reason ?? given.get(entry.revision))];
      case 'not_sent':
        return why(entry.reason);
      case 'delivery':
        return [link('delivery', entry.delivery), 'now', state(entry.state), why(entry.reason)];
      case 'attempt': {
        const how = `${attemptName(entry)}: ${outcomeText(entry)} after ${entry.duration_ms} ms, of`;
        return [resultOf(entry), how, link('delivery', entry.delivery)];
      }
      case 'due':
        return link('delivery', entry.delivery);
      default:
        return entry satisfies never;
    }
  };
  return [
    { head: 'Time', cell: ({ at }) => (at === '' ? '–' : time(at)) },
    { head: 'What', cell: ({ what }) => WHAT[what] },
    { head: 'Key', cell: (entry) => ('key' in entry ? link('webhook', entry.key) : '') },
    { head: 'Details', cell: details },
  ];
}

const WHAT = {
  event: 'event',
  not_sent: 'not sent',
  delivery: 'delivery made',
  attempt: 'attempt',
  due: 'next attempt',
} as const satisfies Record<TimelineEntry['what'], string>;

/** Why it was voided or cancelled, as whoever did it wrote. */
function reasonGiven(event: AppliedEvent['event']): string | null {
  const { reason } = membersOf(printableData(event));
  return typeof reason === 'string' ? reason : null;
}

export const HIDDEN = 'hidden: --personal';

/** An event's data as text; who drove only where it is `personal`. */
export function dataText(data: unknown, { personal }: { readonly personal: boolean }): string {
  const isHidden = !personal && 'driver' in membersOf(data);
  return JSON.stringify(isHidden ? { ...membersOf(data), driver: HIDDEN } : data);
}

/** A reason that may quote an event's data, without the driver's name and number. */
export function withoutDriver(reason: string, data: unknown): string {
  const { name, mobile_number } = membersOf(membersOf(data).driver);
  return [name, mobile_number]
    .filter((value) => value !== null && value !== undefined && value !== '')
    .flatMap((value) => [JSON.stringify(value), ...(typeof value === 'string' ? [value] : [])])
    .reduce((text, personal) => text.replaceAll(personal, '…'), reason);
}
