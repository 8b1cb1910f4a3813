import { membersOf, printableData, recordedAt } from '../../event-store/codec.ts';
import type { RecordedEvent } from '../../event-store/recorded-event.ts';
import { type Effect, projectEvent, RowFold } from '../../pull/record/project-event.ts';
import type { Delivery } from '../../push/queue/delivery.ts';
import { attemptAnswer, attemptName, deliveryAnswer, outcomeText } from './delivery.ts';

export interface AppliedEvent {
  readonly event: RecordedEvent;
  readonly effect: Effect;
}

/** Returns a transaction's events in order, with the effect of each. */
export function effectsOf(events: readonly RecordedEvent[]): AppliedEvent[] {
  const fold = new RowFold();
  return events.map((event) => ({ event, effect: fold.apply(projectEvent(event)) }));
}

/** Something that happened to a transaction, or is about to. */
export type TimelineEntry =
  | ReturnType<typeof eventEntry>
  | ReturnType<typeof notSentEntry>
  | ReturnType<typeof deliveryEntries>[number];

export interface TimelineParts {
  readonly applied: readonly AppliedEvent[];
  readonly deliveries: readonly Delivery[];
  readonly notSent: readonly { readonly key: string; readonly reason: string }[];
}

/** Lists a transaction's events, deliveries and attempts in the order of time, and why keys got no delivery. */
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

/** The timeline for people. It has the reason for a void, and `hide` removes personal data from reasons. */
export function timelineShown(
  timeline: readonly TimelineEntry[],
  { applied, hide }: Pick<TimelineParts, 'applied'> & { readonly hide: (reason: string) => string },
): readonly object[] {
  const given = new Map(applied.map(({ event }) => [event.revision, reasonGiven(event)]));
  return timeline.map((entry) => {
    if (entry.what === 'attempt') {
      const { at, what, key, delivery, ok, duration_ms } = entry;
      const answer = `${attemptName(entry)}: ${outcomeText(entry)} after ${duration_ms} ms`;
      return { at, what, key, delivery, state: ok ? 'delivered' : 'failed', answer };
    }
    if (!('reason' in entry)) return entry;
    const reason = entry.reason ?? (entry.what === 'event' ? given.get(entry.revision) : undefined) ?? null;
    return { ...entry, reason: reason === null ? null : hide(reason) };
  });
}

/** The reason that was given for a void or a cancellation. */
function reasonGiven(event: AppliedEvent['event']): string | null {
  const { reason } = membersOf(printableData(event));
  return typeof reason === 'string' ? reason : null;
}

export const HIDDEN = 'hidden: --personal';

/** Returns an event's data as text, with the driver only if it may be `personal`. */
export function dataText(data: unknown, { personal }: { readonly personal: boolean }): string {
  const isHidden = !personal && 'driver' in membersOf(data);
  return JSON.stringify(isHidden ? { ...membersOf(data), driver: HIDDEN } : data);
}

/** Removes the driver's name and number from a reason, which may quote an event's data. */
export function withoutDriver(reason: string, data: unknown): string {
  const { name, mobile_number } = membersOf(membersOf(data).driver);
  return [name, mobile_number]
    .filter((value) => value !== null && value !== undefined && value !== '')
    .flatMap((value) => [JSON.stringify(value), ...(typeof value === 'string' ? [value] : [])])
    .reduce((text, personal) => text.replaceAll(personal, '…'), reason);
}
