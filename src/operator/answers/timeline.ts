import { membersOf, occurredAt, printableData } from '../../event-store/codec.ts';
import type { RecordedEvent } from '../../event-store/recorded-event.ts';
import type { Shown } from '../../push/held.ts';
import type { Delivery } from '../../push/queue/delivery.ts';
import { type Effect, projectEvent, TransactionFold } from '../../records/project-event.ts';
import { attemptAnswer, attemptName, deliveryAnswer, outcomeText } from './delivery.ts';

export interface AppliedEvent {
  readonly event: RecordedEvent;
  readonly effect: Effect;
}

/** Returns a transaction's events in order, with the effect of each. */
export function effectsOf(events: readonly RecordedEvent[]): AppliedEvent[] {
  const fold = new TransactionFold();
  return events.map((event) => ({ event, effect: fold.apply(projectEvent(event)) }));
}

/** Something that happened to a transaction, or is about to. */
export type TimelineEntry =
  | ReturnType<typeof eventEntry>
  | ReturnType<typeof notSentEntry>
  | ReturnType<typeof deliveryEntries>[number];

export interface TimelineParts {
  readonly applied: readonly AppliedEvent[];
  readonly deliveries: readonly Shown<Delivery>[];
  readonly notSent: readonly { readonly key: string; readonly reason: string }[];
}

/** Lists a transaction's events, deliveries and attempts in the order of time, and why keys got no delivery. */
export function timelineOf({ applied, deliveries, notSent }: TimelineParts): readonly TimelineEntry[] {
  const decided = applied.find(({ effect }) => effect.kind === 'shown') ?? applied[0];
  const decidedAt = decided === undefined ? '' : occurredAt(decided.event);
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
  return { at: occurredAt(event), what: 'event' as const, type, revision, effect: effect.kind, reason };
}

function notSentEntry(at: string, { key, reason }: TimelineParts['notSent'][number]) {
  return { at, what: 'not_sent' as const, key, reason };
}

function deliveryEntries(delivery: Shown<Delivery>) {
  const { id, state: name, key, type, created_at, reason, due_at } = deliveryAnswer(delivery);
  const of = { key, delivery: id };
  const attempts = delivery.attempts.map((attempt) => {
    const { at, headers: _, ...outcome } = attemptAnswer(attempt);
    return { at, what: 'attempt' as const, ...of, ...outcome };
  });
  const made = { at: created_at, what: 'delivery' as const, ...of, type, state: name, reason };
  return [made, ...attempts, ...(due_at === null ? [] : [{ at: due_at, what: 'due' as const, ...of }])];
}

/** The timeline for people. It has the reasons of events, which may name a person, only if they may be `personal`. */
export function timelineShown(
  timeline: readonly TimelineEntry[],
  { applied, personal }: Pick<TimelineParts, 'applied'> & Personal,
): readonly object[] {
  const given = new Map(applied.map(({ event }) => [event.revision, reasonGiven(event)]));
  return timeline.map((entry) => {
    if (entry.what === 'attempt') {
      const { at, what, key, delivery, ok, duration_ms } = entry;
      const answer = `${attemptName(entry)}: ${outcomeText(entry)} after ${duration_ms} ms`;
      return { at, what, key, delivery, state: ok ? 'delivered' : 'failed', answer };
    }
    if (entry.what !== 'event') return entry;
    const reason = entry.reason ?? given.get(entry.revision) ?? null;
    return { ...entry, reason: reason === null || personal ? reason : HIDDEN };
  });
}

/** The reason that was given for a void or a cancellation. */
function reasonGiven(event: AppliedEvent['event']): string | null {
  const { reason } = membersOf(printableData(event));
  return typeof reason === 'string' ? reason : null;
}

export const HIDDEN = 'hidden: --personal';

/** Says if drivers, and reasons that may name one, are shown. */
export interface Personal {
  readonly personal: boolean;
}

/**
 * Returns an event's data as text, with the driver, and the reason for what was done to a transaction or a driver, only if they
 * may be `personal`.
 */
export function dataText(data: unknown, { personal }: Personal): string {
  const members = membersOf(data);
  const namesPerson = ['transaction_id', 'driver_id', 'driver'].some((name) => name in members);
  if (personal || !namesPerson) return JSON.stringify(data);
  const hidden = ['driver', 'reason'].filter((name) => (members[name] ?? null) !== null);
  return JSON.stringify({ ...members, ...Object.fromEntries(hidden.map((name) => [name, HIDDEN])) });
}
