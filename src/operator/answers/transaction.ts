import type { TransactionRow } from '../../../projections/transactions.ts';
import { transactionStream, type VisibleStatus } from '../../domain/transaction-events.ts';
import { formatDateTime } from '../../domain/values/date-time.ts';
import { occurredAt, printableData } from '../../event-store/codec.ts';
import type { PageRow, ViewReads } from '../../pull/view/transactions-view.ts';
import type { DeliveryReads } from '../../push/queue/delivery-queue.ts';
import {
  type TransactionDeliveriesOptions,
  transactionDeliveries,
} from '../deliveries/transaction-deliveries.ts';
import { searchable } from '../search/search-text.ts';
import { type NoAccess, noAccess } from './access.ts';
import { type AccountOf, deliveryAnswer, withHeldReasons } from './delivery.ts';
import { dataText, effectsOf, HIDDEN, type Personal, timelineOf, timelineShown } from './timeline.ts';

/** The part of a record that a list shows. */
interface Shown {
  readonly status: VisibleStatus;
  readonly corporate: { readonly id: number };
  readonly vehicle: { readonly number_plate: string | null };
}

/** A transaction that customers see, in a list. */
export function recordAnswer(
  account: number,
  { id, createdAtMs, record }: Pick<PageRow | TransactionRow, 'id' | 'createdAtMs' | 'record'>,
) {
  const { status, corporate, vehicle } = JSON.parse(record) as Shown;
  return {
    id,
    account,
    status,
    created_at: formatDateTime(createdAtMs),
    corporate: corporate.id,
    number_plate: vehicle.number_plate,
    /** The text as printed, with all its decimals. */
    total_amount: /"total_amount":([^,}]+)/.exec(record)?.[1] ?? '',
  };
}

/** True if the number plate contains a `searchable` text. */
export function hasPlate(
  { number_plate }: { readonly number_plate: string | null },
  wanted: string,
): boolean {
  return number_plate !== null && searchable(number_plate).includes(wanted);
}

export interface TransactionParts extends TransactionDeliveriesOptions {
  readonly view: Pick<ViewReads, 'find' | 'checkpoint'>;
  readonly queue: Pick<DeliveryReads, 'page' | 'get'>;
  readonly accountOf: AccountOf;
}

export type FoundTransaction = Awaited<ReturnType<typeof findTransaction>>;

/** Reads what is known of a transaction, with the attempts of its newest `maxDeliveries`. */
export async function findTransaction(
  id: number,
  parts: TransactionParts,
  { maxDeliveries = Number.POSITIVE_INFINITY } = {},
) {
  const { store, view, queue, accountOf, clock } = parts;
  const stream = transactionStream(id);
  const [events, found, checkpoint] = await Promise.all([
    store.readStream(stream),
    view.find([id]),
    view.checkpoint(),
  ]);
  const row = found.get(id)?.shown ?? undefined;
  const nowMs = clock.now();
  const owed = await transactionDeliveries(id, events, parts);
  const whole = await queue.get(owed.deliveries.slice(0, maxDeliveries));
  const applied = effectsOf(events);
  const timeline = timelineOf({
    applied,
    deliveries: await withHeldReasons(whole, accountOf, nowMs),
    notSent: owed.notSent,
  });
  return {
    id,
    events,
    applied,
    timeline,
    /** The row of the view as it is now. */
    row,
    isErased: events.length === 0 && (await store.isErased(stream)),
    /** The reason why requests for the record are refused; `null` if they are not, or there is no record. */
    noAccess: row === undefined ? null : await noAccessOf(row.accountId, accountOf, nowMs),
    deliveries: await withHeldReasons(owed.deliveries, accountOf, nowMs),
    notSent: owed.notSent,
    viewPosition: checkpoint?.position ?? 0,
  };
}

/** True if there is nothing to show. The deliveries of an erased transaction stay in the log, but do not count. */
export function isMissing({ events, row, isErased, deliveries }: FoundTransaction): boolean {
  return events.length === 0 && row === undefined && (isErased || deliveries.length === 0);
}

async function noAccessOf(accountId: number, accountOf: AccountOf, nowMs: number): Promise<NoAccess | null> {
  const found = await accountOf(accountId);
  return found === undefined ? { reason: 'the account was never opened' } : noAccess(found.details, nowMs);
}

/** Says whether customers see a transaction. A record is visible while requests of its account are answered. */
interface Seen {
  readonly visible: boolean;
  readonly no_access?: string;
  readonly answered?: NoAccess['answered'];
  readonly record?: string;
}

/** Includes the record if there are no events that show it. */
function seenOf({ row, noAccess: refused, events }: FoundTransaction): Seen {
  if (row === undefined) return { visible: false };
  const record = events.length === 0 && { record: row.record };
  if (refused === null) return { visible: true, ...record };
  const { reason, answered } = refused;
  return { visible: false, no_access: reason, ...(answered && { answered }), ...record };
}

export function transactionAnswer(found: FoundTransaction) {
  const { id, events, deliveries, notSent, timeline } = found;
  return {
    id,
    events: events.map((event) => ({
      revision: event.revision,
      at: occurredAt(event),
      type: event.type,
      data: printableData(event),
    })),
    ...seenOf(found),
    deliveries: deliveries.map(deliveryAnswer),
    not_sent: notSent,
    timeline,
  };
}

/**
 * The transaction for people: a timeline instead of deliveries, and what the view has applied. The driver, the
 * reasons of events and a whole record are shown only if they may be `personal`.
 */
export function transactionShown(found: FoundTransaction, { personal }: Personal) {
  const { id, events, applied } = found;
  const { record: whole, ...visibility } = seenOf(found);
  const record = whole === undefined || personal ? whole : HIDDEN;
  return {
    id,
    ...visibility,
    view: appliedText(found),
    ...(record !== undefined && { record }),
    timeline: timelineShown(found.timeline, { applied, personal }),
    events: events.map((event) => ({
      revision: event.revision,
      type: event.type,
      data: dataText(printableData(event), { personal }),
    })),
  };
}

/** Says if a record that customers do not see yet will appear by itself. */
function appliedText({ events, isErased, viewPosition }: FoundTransaction): string {
  const last = events.at(-1);
  if (isErased) return 'erased, and still shown: `fuel verify view --repair` repairs that';
  if (last === undefined) return 'no event recorded it: `fuel verify view --repair` repairs that';
  return last.position > viewPosition
    ? `not applied yet: the view is at ${viewPosition} of the log, the newest event at ${last.position}`
    : 'all of its events were applied';
}
