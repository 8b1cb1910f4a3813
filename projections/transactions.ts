import {
  isRecordingType,
  STATUSES,
  type TransactionEventType,
  type VisibleStatus,
} from '../src/domain/transaction-events.ts';
import { MAX_TEXT_CHARACTERS, objectKeyFault, textFault } from '../src/domain/values/bounds.ts';
import { parseDateTime, printedDateTime } from '../src/domain/values/date-time.ts';
import { printDecimal } from '../src/domain/values/decimal.ts';
import { isRedacted, type RenderedRecord, redactedRecord, sameRecord } from './record.ts';

/**
 * The version of the rendered text. Raise it when the text changes: rows of another version are rebuilt from the
 * events.
 */
export const RENDERING_VERSION = 1;

/**
 * The references by which a record is found, besides its account, status and time: parameters of the API and columns of
 * views, each with the rendering since which a view has it. Each is an integer in the record itself, or `null`.
 */
const SINCE = { corporate_group_id: 1, corporate_id: 1 } as const satisfies Record<string, number>;
export type Reference = keyof typeof SINCE;
export const REFERENCES = Object.keys(SINCE) as readonly Reference[];

/** The references that a view of this rendering has. */
export function referencesSince(rendering: number): readonly Reference[] {
  return REFERENCES.filter((name) => SINCE[name] <= rendering);
}

export type References = Readonly<Record<Reference, number | null>>;

/** Reads references by their names: all of them, or those of a view that lacks some. */
export function referencesBy(
  read: (name: Reference) => number | null,
  names: readonly Reference[] = REFERENCES,
): References {
  const references: Partial<Record<Reference, number | null>> = {};
  for (const name of names) references[name] = read(name);
  return references as References;
}

export interface TransactionRow extends RenderedRecord {
  readonly id: number;
  readonly accountId: number;
  readonly status: VisibleStatus;
  readonly createdAtMs: number;
  readonly references: References;
}

/** The change that one event makes to the view. `erase` leaves nothing of the transaction, not even the account. */
export type TransactionChange =
  | { readonly kind: 'show'; readonly revision: number; readonly row: TransactionRow }
  | { readonly kind: 'hide'; readonly revision: number; readonly id: number; readonly accountId: number }
  | { readonly kind: 'erase'; readonly revision: number; readonly id: number };

export function idOfChange(change: TransactionChange): number {
  return change.kind === 'show' ? change.row.id : change.id;
}

/** A value in an event that can't be shown. */
export class RecordFault extends Error {
  constructor(path: string, problem: string) {
    super(`${path}: ${problem}`);
    this.name = 'RecordFault';
  }
}

/**
 * Returns the change that an event makes. It checks every value while rendering it, as strictly as the event's schema,
 * and throws a `RecordFault` that names the first value that does not fit.
 */
export function projectTransaction(
  type: TransactionEventType,
  data: unknown,
  revision: number,
): TransactionChange {
  const read = fields(data, 'data');
  return isRecordingType(type)
    ? { kind: 'show', revision, row: renderRow(read, STATUSES[type]) }
    : hide(read, type === 'TransactionVoided' ? 'voided_at' : 'cancelled_at', revision);
}

/** The account of an erased transaction. */
export const NO_ACCOUNT = 0;

/** A transaction as a view knows it. */
export interface RowState {
  /** The revision of the last event that was applied. */
  readonly revision: number;
  readonly accountId: number;
  /** `null` for a tombstone. */
  readonly shown: TransactionRow | null;
}

/**
 * Says if a change applies to the row. A `stale` change has no effect, since the event or the same one was applied
 * before. An `illegal` event can't follow those before it, and is parked with the reason.
 */
export function transition(
  before: RowState | undefined,
  change: TransactionChange,
): 'apply' | 'stale' | { readonly illegal: string } {
  if (before === undefined) return 'apply';
  if (change.revision <= before.revision) return 'stale';
  if (change.kind === 'erase') return 'apply';
  const { accountId } = change.kind === 'show' ? change.row : change;
  if (before.accountId !== accountId) return { illegal: `it belongs to account ${before.accountId}` };
  if (change.kind === 'hide') return before.shown === null ? 'stale' : 'apply';
  // An engine that can't change events records a redacted transaction again, at the end of its stream.
  if (before.shown === null)
    return isRedacted(change.row) ? 'stale' : { illegal: 'it was voided or cancelled before' };
  if (sameRecord(before.shown, change.row)) return 'stale';
  return sameRecord(redactedRecord(before.shown), change.row)
    ? 'apply'
    : { illegal: 'it was recorded before, with other content' };
}

/** Returns the state of a transaction after a change. */
export function stateAfter(change: TransactionChange): RowState {
  const { revision } = change;
  if (change.kind === 'show') return { revision, accountId: change.row.accountId, shown: change.row };
  return { revision, accountId: change.kind === 'hide' ? change.accountId : NO_ACCOUNT, shown: null };
}

function hide(data: Fields, timeField: string, revision: number): TransactionChange {
  dateTime(data[timeField], timeField);
  const reason = data.reason;
  if (reason !== undefined && reason !== null) text(reason, 'reason');
  return {
    kind: 'hide',
    revision,
    id: id(data.transaction_id, 'transaction_id'),
    accountId: id(data.account_id, 'account_id'),
  };
}

function renderRow(data: Fields, status: VisibleStatus): TransactionRow {
  const transactionId = id(data.transaction_id, 'transaction_id');
  const createdAtMs = dateTime(data.created_at, 'created_at');
  const corporate = fields(data.corporate, 'corporate');
  const group = data.corporate_group === null ? null : fields(data.corporate_group, 'corporate_group');
  const driver = fields(data.driver, 'driver');
  const mobile = driver.mobile_number;
  const images = fields(data.images, 'images');
  const confirmedAt = data.confirmed_at;
  const head =
    `{"id":${transactionId},"status":"${status}","created_at":"${dateTimeText(data.created_at, 'created_at')}",` +
    `"confirmed_at":${confirmedAt === null ? 'null' : `"${dateTimeText(confirmedAt, 'confirmed_at')}"`},` +
    `"correction_reference_id":${data.correction_reference_id === null ? 'null' : id(data.correction_reference_id, 'correction_reference_id')},` +
    `"corporate":${namedRef(corporate, 'corporate')},` +
    `"corporate_group":${group === null ? 'null' : namedRef(group, 'corporate_group')},` +
    `"fuel":${renderFuel(fields(data.fuel, 'fuel'))},` +
    `"odometer_reading":${nullableInteger(data.odometer_reading, 'odometer_reading')},` +
    `"distance_traveled":${nullableInteger(data.distance_traveled, 'distance_traveled')},` +
    `"fuel_consumption":${data.fuel_consumption === null ? 'null' : decimal(data.fuel_consumption, 2, 'fuel_consumption')},` +
    `"station":${renderStation(fields(data.station, 'station'), status)},` +
    `"vehicle":${renderVehicle(fields(data.vehicle, 'vehicle'))},` +
    `"driver":{"id":${id(driver.id, 'driver.id')},"name":${text(driver.name, 'driver.name')}`;
  return {
    id: transactionId,
    accountId: id(data.account_id, 'account_id'),
    status,
    createdAtMs,
    references: {
      corporate_group_id: group === null ? null : (group.id as number),
      corporate_id: corporate.id as number,
    },
    head,
    mobileNumber: mobile === undefined || mobile === null ? null : text(mobile, 'driver.mobile_number'),
    fees: renderFees(fields(data.fees, 'fees')),
    pump: objectKey(images.pump, 'images.pump'),
    odometer: objectKey(images.odometer, 'images.odometer'),
  };
}

function renderFuel(fuel: Fields): string {
  return (
    `{"type":${namedRef(fields(fuel.type, 'fuel.type'), 'fuel.type')},` +
    `"liters":${decimal(fuel.liters, 2, 'fuel.liters')},` +
    `"price_per_liter":${decimal(fuel.price_per_liter, 2, 'fuel.price_per_liter')},` +
    `"amount":${decimal(fuel.amount, 2, 'fuel.amount')}}`
  );
}

function renderStation(station: Fields, status: VisibleStatus): string {
  const name = text(station.name, 'station.name');
  if (status === 'EXTERNAL') {
    absent(station.id, 'station.id');
    absent(station.provider, 'station.provider');
    return `{"id":null,"name":${name},"provider":null,"is_external":true}`;
  }
  const provider = namedRef(fields(station.provider, 'station.provider'), 'station.provider');
  return `{"id":${id(station.id, 'station.id')},"name":${name},"provider":${provider},"is_external":false}`;
}

function renderVehicle(vehicle: Fields): string {
  const department = vehicle.department;
  return (
    `{"id":${id(vehicle.id, 'vehicle.id')},` +
    `"code":${nullableText(vehicle.code, 'vehicle.code')},` +
    `"number_plate":${nullableText(vehicle.number_plate, 'vehicle.number_plate')},` +
    `"chassis_number":${nullableText(vehicle.chassis_number, 'vehicle.chassis_number')},` +
    `"brand":${nullableText(vehicle.brand, 'vehicle.brand')},` +
    `"model":${nullableText(vehicle.model, 'vehicle.model')},` +
    `"year":${nullableInteger(vehicle.year, 'vehicle.year')},` +
    `"department":${department === null ? 'null' : namedRef(fields(department, 'vehicle.department'), 'vehicle.department')}}`
  );
}

function renderFees(fees: Fields): string {
  return (
    `{"total_fees":${decimal(fees.total_fees, 2, 'fees.total_fees')},` +
    `"total_vat":${decimal(fees.total_vat, 2, 'fees.total_vat')},` +
    `"total_amount":${decimal(fees.total_amount, 6, 'fees.total_amount')}}`
  );
}

type Fields = Readonly<Record<string, unknown>>;

function fields(value: unknown, path: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new RecordFault(path, 'must be an object');
  }
  return value as Fields;
}

function namedRef(ref: Fields, path: string): string {
  return `{"id":${id(ref.id, `${path}.id`)},"name":${text(ref.name, `${path}.name`)}}`;
}

function id(value: unknown, path: string): number {
  if (Number.isSafeInteger(value) && (value as number) >= 0) return (value as number) + 0; // -0 prints as 0
  throw new RecordFault(path, 'must be an integer from 0 to 2^53-1');
}

function nullableInteger(value: unknown, path: string): string {
  if (value === null) return 'null';
  if (Number.isSafeInteger(value)) return `${value as number}`;
  throw new RecordFault(path, 'must be null or an integer within 2^53-1');
}

/**
 * Matches text that JSON does not escape, which saves `JSON.stringify`. It has no control characters, quotes,
 * backslashes or surrogates.
 */
const PLAIN = /^[ !#-[\]-\ud7ff\ue000-\uffff]*$/;

function text(value: unknown, path: string): string {
  if (typeof value !== 'string') throw new RecordFault(path, 'must be a string');
  if (value.length <= MAX_TEXT_CHARACTERS && PLAIN.test(value)) return `"${value}"`;
  assertFit(textFault(value), path);
  return JSON.stringify(value);
}

function nullableText(value: unknown, path: string): string {
  return value === null ? 'null' : text(value, path);
}

function objectKey(value: unknown, path: string): string | null {
  if (value !== null && typeof value !== 'string') throw new RecordFault(path, 'must be a string or null');
  if (value !== null) assertFit(objectKeyFault(value), path);
  return value;
}

function assertFit(fault: string | undefined, path: string): void {
  if (fault !== undefined) throw new RecordFault(path, fault);
}

function decimal(value: unknown, decimals: number, path: string): string {
  const printed = typeof value === 'string' ? printDecimal(value, decimals) : undefined;
  if (printed !== undefined) return printed;
  throw new RecordFault(path, `must be a decimal as a string with at most ${decimals} decimals`);
}

function dateTime(value: unknown, path: string): number {
  const ms = typeof value === 'string' ? parseDateTime(value) : undefined;
  if (ms !== undefined) return ms;
  throw new RecordFault(path, 'must be an ISO 8601 date-time that exists');
}

function dateTimeText(value: unknown, path: string): string {
  const text = typeof value === 'string' ? printedDateTime(value) : undefined;
  if (text !== undefined) return text;
  throw new RecordFault(path, 'must be an ISO 8601 date-time that exists');
}

function absent(value: unknown, path: string): void {
  if (value !== undefined && value !== null)
    throw new RecordFault(path, 'must be absent or null: the station is external');
}
