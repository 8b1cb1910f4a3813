import { printableData, recordedAt } from '../event-store/codec.ts';
import { printableLine } from '../printable.ts';
import type { AppliedEvent } from '../transactions/as-of.ts';
import { attemptJson, attemptText, deliveryJson } from './describe-delivery.ts';
import type { Delivery } from './queue/delivery-queue.ts';

/** One thing that happened to a transaction, or is about to. */
export interface TimelineEntry {
  readonly at: string;
  readonly what: 'event' | 'not_sent' | 'delivery' | 'attempt' | 'due';
  readonly [detail: string]: unknown;
}

interface Line {
  readonly entry: TimelineEntry;
  readonly text: string;
}

export interface TimelineParts {
  readonly applied: readonly AppliedEvent[];
  readonly deliveries: readonly Delivery[];
  readonly notSent: readonly { readonly key: string; readonly reason: string }[];
}

/** A transaction's events, deliveries and attempts in the order of time, with why keys got none. */
export function timelineOf({ applied, deliveries, notSent }: TimelineParts): readonly Line[] {
  const decided = applied.find(({ effect }) => effect.kind === 'shown') ?? applied[0];
  const decidedAt = decided === undefined ? '' : recordedAt(decided.event);
  const lines = [
    ...applied.map(eventLine),
    ...notSent.map(({ key, reason }) => ({
      entry: { at: decidedAt, what: 'not_sent' as const, key, reason },
      text: printableLine(`${decidedAt}  not sent to key ${key}: ${reason}`),
    })),
    ...deliveries.flatMap(deliveryLines),
  ];
  return lines.sort((a, b) => (a.entry.at < b.entry.at ? -1 : a.entry.at > b.entry.at ? 1 : 0));
}

function eventLine({ event, effect }: AppliedEvent): Line {
  const at = recordedAt(event);
  const { revision, type } = event;
  const reason = effect.kind === 'parked' ? effect.reason : null;
  const why = reason === null ? '' : ` (${reason})`;
  return {
    entry: { at, what: 'event', type, revision, effect: effect.kind, reason },
    text: printableLine(`${at}  ${type}  ${effect.kind}${why}  ${JSON.stringify(printableData(event))}`),
  };
}

function deliveryLines(delivery: Delivery): Line[] {
  const { id, state, key, type, created_at, reason, due_at } = deliveryJson(delivery);
  const place = { key, delivery: id };
  const why = reason === null ? '' : ` (${printableLine(reason)})`;
  const made: Line = {
    entry: { at: created_at, what: 'delivery', ...place, type, state, reason },
    text: `${created_at}  delivery ${id} to key ${key}, now ${state}${why}`,
  };
  const attempts = delivery.attempts.map((attempt): Line => {
    const { at, headers: _, ...outcome } = attemptJson(attempt);
    return {
      entry: { at, what: 'attempt', ...place, ...outcome },
      text: attemptText(attempt).replace('  ', `  key ${key}: `),
    };
  });
  if (due_at === null) return [made, ...attempts];
  const text = `${due_at}  next attempt of delivery ${id} to key ${key}`;
  return [made, ...attempts, { entry: { at: due_at, what: 'due', ...place }, text }];
}
