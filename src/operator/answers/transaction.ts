import type { RenderedRecord } from '../../../projections/record.ts';
import type { TransactionRow } from '../../../projections/transactions.ts';
import { transactionStream, type VisibleStatus } from '../../domain/transaction-events.ts';
import { formatDateTime } from '../../domain/values/date-time.ts';
import { printableData, recordedAt } from '../../event-store/codec.ts';
import type { PageRow, ViewReads } from '../../pull/view/transactions-view.ts';
import type { Delivery } from '../../push/queue/delivery.ts';
import type { DeliveryReads } from '../../push/queue/delivery-reads.ts';

import {
  type TransactionDeliveriesOptions,
  transactionDeliveries,
} from '../deliveries/transaction-deliveries.ts';
import { accessAt, type KeyAccess, type NoAccess, noAccess, refusalCells } from './access.ts';
import { type Column, type Facts, link, type Section, state, type Table, table, time } from './columns.ts';
import { type AccountOf, deliveryAnswer, withHeldReasons } from './delivery.ts';
import {
  dataText,
  effectsOf,
  HIDDEN,
  rowAt,
  timelineColumns,
  timelineOf,
  withoutDriver,
} from './timeline.ts';

/** What a list shows of a record's text. */
interface Head {
  readonly status: VisibleStatus;
  readonly corporate: { readonly id: number };
  readonly vehicle: { readonly number_plate: string | null };
}

/** A transaction in a list of what customers see. */
export function recordAnswer(
  account: number,
  { id, createdAtMs, head, fees }: Pick<PageRow | TransactionRow, 'id' | 'createdAtMs' | 'head' | 'fees'>,
) {
  const { status, corporate, vehicle } = JSON.parse(`${head}}}`) as Head;
  return {
    id,
    account,
    status,
    created_at: formatDateTime(createdAtMs),
    corporate: corporate.id,
    number_plate: vehicle.number_plate,
    /** As printed, with all its decimals. */
    total_amount: /"total_amount":([^,}]+)/.exec(`${fees}`)?.[1] ?? '',
  };
}

/** Whether the number plate contains a text, whatever their spaces and capitals. */
export function hasPlate({ number_plate }: { readonly number_plate: string | null }, text: string): boolean {
  const plain = (each: string): string => each.replaceAll(/\s/g, '').toUpperCase();
  return number_plate !== null && plain(number_plate).includes(plain(text));
}

export const RECORD_COLUMNS: readonly Column<ReturnType<typeof recordAnswer>>[] = [
  { head: 'Created', width: 24, cell: ({ created_at }) => time(created_at) },
  { head: 'Transaction', width: 11, cell: ({ id }) => link('transaction', id) },
  { head: 'Status', width: 9, cell: ({ status }) => status },
  { head: 'Corporate', width: 9, cell: ({ corporate }) => corporate },
  { head: 'Plate', width: 12, cell: ({ number_plate }) => number_plate ?? '–' },
  { head: 'Total', width: 14, number: true, cell: ({ total_amount }) => total_amount },
];

/** With why a key got no delivery of it. */
export const UNSENT_COLUMNS: readonly Column<
  ReturnType<typeof recordAnswer> & { readonly reason: string }
>[] = [...RECORD_COLUMNS, { head: 'Why it was not sent', cell: ({ reason }) => reason }];

export interface TransactionParts extends TransactionDeliveriesOptions {
  readonly view: Pick<ViewReads, 'find' | 'checkpoint'>;
  readonly queue: Pick<DeliveryReads, 'page' | 'find'>;
  readonly accountOf: AccountOf;
}

export type FoundTransaction = Awaited<ReturnType<typeof findTransaction>>;

/** What is known of a transaction, with the attempts of its newest `maxDeliveries`. */
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
  const attempted = await Promise.all(
    owed.deliveries.slice(0, maxDeliveries).map((each) => queue.find(each.id)),
  );
  const whole = attempted.filter((delivery): delivery is Delivery => delivery !== undefined);
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
    /** As the view shows it now. */
    row,
    isErased: events.length === 0 && (await store.isErased(stream)),
    /** Why requests for a record that is there are refused. */
    noAccess: row === undefined ? null : await noAccessOf(row.accountId, accountOf, nowMs),
    deliveries: await withHeldReasons(owed.deliveries, accountOf, nowMs),
    notSent: owed.notSent,
    viewPosition: checkpoint?.position ?? 0,
  };
}

/** Nothing to show: the deliveries of an erased transaction stay in the log, and are nothing. */
export function isMissing({ events, row, isErased, deliveries }: FoundTransaction): boolean {
  return events.length === 0 && row === undefined && (isErased || deliveries.length === 0);
}

async function noAccessOf(accountId: number, accountOf: AccountOf, nowMs: number): Promise<NoAccess | null> {
  const entry = await accountOf(accountId);
  return entry === undefined ? { reason: 'the account was never opened' } : noAccess(entry.account, nowMs);
}

/** Whether customers see it now, or saw it at a time. A record is visible while requests of its account are answered. */
export interface Seen {
  readonly at?: string;
  readonly visible: boolean;
  readonly no_access?: string;
  readonly answered?: NoAccess['answered'];
  readonly record?: string | null;
  /** What each key of the account could read then; `null` where it can't be read. */
  readonly access?: readonly KeyAccess[] | null;
}

/** With the record where nothing else shows what customers see. */
export function seenNow({ row, noAccess: refused, events }: FoundTransaction): Seen {
  const record = row !== undefined && events.length === 0 ? { record: archivedText(row) } : {};
  return { ...visibility(row, refused), ...record };
}

/** By the events that were recorded until then, and by the account's: the view only knows the present. */
export async function seenAt(
  { applied }: FoundTransaction,
  atMs: number,
  { store, environment }: Pick<TransactionParts, 'store' | 'environment'>,
): Promise<Seen> {
  const row = rowAt(applied, atMs);
  const accountId = (row ?? applied.find((each) => each.row !== undefined)?.row)?.accountId;
  const { noAccess: refused, keys } =
    accountId === undefined
      ? { noAccess: null, keys: [] }
      : await accessAt(store, accountId, { atMs, environment });
  const record = row === undefined ? null : archivedText(row);
  return { at: formatDateTime(atMs), ...visibility(row, refused), record, access: keys };
}

function visibility(row: TransactionRow | undefined, refused: NoAccess | null): Seen {
  if (row === undefined || refused === null) return { visible: row !== undefined };
  const { reason, answered } = refused;
  return { visible: false, no_access: reason, ...(answered && { answered }) };
}

export function transactionAnswer(
  { id, events, deliveries, notSent, timeline }: FoundTransaction,
  seen: Seen,
) {
  return {
    id,
    events: events.map((event) => ({
      revision: event.revision,
      at: recordedAt(event),
      type: event.type,
      data: printableData(event),
    })),
    ...seen,
    deliveries: deliveries.map(deliveryAnswer),
    not_sent: notSent,
    timeline,
  };
}

/** Whether it is shown, and where not, whether that will change by itself. */
export function visibilityFacts({ id, events, isErased, viewPosition }: FoundTransaction, seen: Seen): Facts {
  const last = events.at(-1);
  const why = isErased
    ? 'erased, and still shown: fuel verify repairs that'
    : last === undefined
      ? 'no event calls for what is shown: fuel verify repairs that'
      : last.position > viewPosition
        ? `not applied yet: the view is at ${viewPosition} of the log, the newest event at ${last.position}`
        : 'every event of it was applied';
  const { at, visible, no_access, answered } = seen;
  return {
    facts: [
      ['Transaction', link('transaction', id)],
      ...(at === undefined ? [] : ([['At', time(at)]] as const)),
      ['Customers', state(visible ? 'visible' : 'not visible', visible ? 'good' : 'quiet')],
      ...(no_access === undefined
        ? []
        : ([['Why not', ['recorded;', ...refusalCells({ reason: no_access, answered })]]] as const)),
      ['The view', why],
      ['Events', events.length],
    ],
  };
}

/** Who drove only where it is `personal`: reasons may quote the events. */
export function timelineTable(
  { timeline, applied }: FoundTransaction,
  { personal }: { readonly personal: boolean },
): Table {
  const hide = (reason: string): string =>
    applied.reduce((text, { event }) => withoutDriver(text, printableData(event)), reason);
  return table('Timeline', timelineColumns(applied, personal ? (reason) => reason : hide), {
    of: timeline,
    empty: 'Nothing happened.',
  });
}

const ACCESS_COLUMNS: readonly Column<KeyAccess>[] = [
  { head: 'Key', cell: ({ key }) => link('key', key) },
  { head: 'Could read', cell: ({ can_read, reason }) => reason ?? (can_read ? 'yes' : 'no') },
  { head: 'Mobile numbers', cell: ({ mobile_number }) => (mobile_number ? 'shown' : 'left out') },
];

/** All of it, with the data of its events; who drove only where it is `personal`. */
export function transactionSections(
  found: FoundTransaction,
  seen: Seen,
  { personal }: { readonly personal: boolean },
): Section[] {
  const { record: whole, access } = seen;
  const record = whole == null || personal ? whole : recordWithoutDriver(whole);
  const data = found.events.map(
    (event) => [`${event.type}@${event.revision}`, dataText(printableData(event), { personal })] as const,
  );
  return [
    visibilityFacts(found, seen),
    ...(record == null ? [] : [{ facts: [['Record', record]] as const }]),
    ...(access === null ? [{ facts: [['Access', 'the account can not be read: not known']] as const }] : []),
    ...(access?.length ? [table('Access of keys', ACCESS_COLUMNS, { of: access, empty: '' })] : []),
    timelineTable(found, { personal }),
    ...(data.length === 0 ? [] : [{ facts: data }]),
  ];
}

/** A record's text; quotes within its texts are escaped, so these are its own members. */
function recordWithoutDriver(record: string): string {
  const from = record.lastIndexOf('"driver":{');
  const to = record.indexOf('},"fees":', from) + 1;
  return from === -1 || to === 0 ? record : `${record.slice(0, from)}"driver":"${HIDDEN}"${record.slice(to)}`;
}

/** A record's text with the photos' names in the store in place of URLs, which only a request makes. */
export function archivedText({ head, mobileNumber, fees, pump, odometer }: RenderedRecord): string {
  const mobile = mobileNumber === null ? '' : `,"mobile_number":${mobileNumber}`;
  return `${head}${mobile}},"fees":${fees},"images":${JSON.stringify({ pump, odometer })}}`;
}
