import { LRUCache } from 'lru-cache';
import { systemClock } from '../base/clock.ts';
import {
  commandPlace,
  type EndedSpan,
  isTracing,
  spanIdOf,
  trace,
  traceIdOf,
} from '../base/tracing/spans.ts';
import { world } from '../base/world.ts';
import { membersOf } from '../event-store/codec.ts';
import type { RecordedEvent } from '../event-store/recorded-event.ts';
import type { Attempt, ClaimedDelivery, DeliveryReport } from './queue/delivery.ts';
import { endOf } from './queue/next-state.ts';
import type { SendResult } from './sender/timed-send.ts';

/** Deliveries are mostly attempted right after their event, so a few commands are remembered. */
class Commands {
  readonly byDelivery = new LRUCache<string, string>({ max: 10_000 });
}

/** Remembers which command has recorded the event of a new delivery, for the link of its trace. */
export function noteCommand(deliveryId: string, { metadata }: Pick<RecordedEvent, 'metadata'>): void {
  if (!isTracing()) return;
  const { correlation_id: id } = membersOf(metadata);
  if (typeof id === 'string') world.single(Commands).byDelivery.set(deliveryId, id);
}

type TracedDelivery = Pick<
  ClaimedDelivery,
  'id' | 'prefix' | 'transactionId' | 'type' | 'createdAtMs' | 'cycle'
>;

export interface TracedOutcome {
  readonly delivery: TracedDelivery;
  readonly report: DeliveryReport;
  /** The URL of the attempt; `undefined` if none was made. */
  readonly url: string | undefined;
  /** The address that was connected to, if any. */
  readonly address: string | null;
  /** The time at which a delivery that ends without an attempt ended. */
  readonly nowMs: number;
}

/** Exports the spans of an outcome that was recorded. `made` is given if an attempt was made. */
export function traceDelivery(
  delivery: ClaimedDelivery,
  report: DeliveryReport,
  made?: { readonly url: string; readonly result: Pick<SendResult, 'address'> },
): void {
  trace(() => {
    const address = made?.result.address ?? null;
    const outcome = { delivery, report, url: made?.url, address, nowMs: systemClock.now() };
    return deliverySpans(outcome, world.single(Commands).byDelivery.get(delivery.id));
  });
}

/**
 * The spans of a recorded outcome: one for the attempt and, once the delivery has ended, the root of its cycle. The trace has
 * the digits of the delivery's id. The ids of the spans are always the same for the same delivery, cycle and attempt.
 */
export function deliverySpans(outcome: TracedOutcome, command?: string): EndedSpan[] {
  const { delivery, report, nowMs } = outcome;
  if (report.kind === 'released') return [];
  const { attempt } = report;
  const root = { traceId: traceIdOf(delivery.id), spanId: spanIdOf(delivery.id, delivery.cycle) };
  const spans = attempt === null ? [] : [attemptSpan(outcome, attempt, root.spanId)];
  if (report.kind === 'retry') return spans;
  return [
    ...spans,
    {
      ...root,
      name: `deliver ${delivery.type}`,
      kind: 'internal',
      startedAtMs: delivery.createdAtMs,
      endedAtMs: attempt === null ? nowMs : endOf(attempt),
      attributes: {
        'fuel.delivery.id': delivery.id,
        'fuel.delivery.cycle': delivery.cycle,
        'fuel.delivery.state': report.kind,
        ...(attempt === null ? {} : { 'fuel.delivery.attempts': attempt.number }),
        'fuel.key.prefix': delivery.prefix,
        'fuel.transaction.id': delivery.transactionId,
      },
      links: command === undefined ? [] : [commandPlace(command)],
      isError: report.kind === 'failed',
    },
  ];
}

function attemptSpan(
  { delivery, url, address }: TracedOutcome,
  attempt: Attempt,
  parentId: string,
): EndedSpan {
  const { cycle, number, startedAtMs, outcome } = attempt;
  const { hostname, port } = new URL(url ?? 'https://unknown.invalid');
  const status = outcome.answer?.status;
  const failure = outcome.ok ? undefined : outcome.kind === 'status' ? String(status) : outcome.kind;
  return {
    traceId: traceIdOf(delivery.id),
    spanId: spanIdOf(delivery.id, cycle, number),
    parentId,
    name: 'POST',
    kind: 'client',
    startedAtMs,
    endedAtMs: endOf(attempt),
    attributes: {
      'http.request.method': 'POST',
      'server.address': hostname.replace(/^\[|\]$/g, ''),
      'server.port': port === '' ? 443 : Number(port),
      'fuel.delivery.cycle': cycle,
      ...(status === undefined ? {} : { 'http.response.status_code': status }),
      ...(failure === undefined ? {} : { 'error.type': failure }),
      ...(number === 1 ? {} : { 'http.request.resend_count': number - 1 }),
      ...(address === null ? {} : { 'network.peer.address': address }),
    },
    isError: !outcome.ok,
  };
}
