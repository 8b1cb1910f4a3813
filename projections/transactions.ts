import {
  isRecordingType,
  STATUSES,
  type TransactionEventType,
  type VisibleStatus,
} from '../src/domain/transaction-events.ts';
import { parseDateTime } from '../src/domain/values/date-time.ts';
import {
  absent,
  dateTime,
  decimal2,
  decimal6,
  type Fields,
  fieldsOf,
  id,
  nullableInteger,
  nullableKey,
  nullableText,
  text,
} from '../src/domain/values/printed.ts';

/**
 * The version of rows and their text. Raise it when the text changes or a reference is added: rows of another version are
 * rebuilt from the events.
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

export interface TransactionRow {
  readonly id: number;
  readonly accountId: number;
  readonly status: VisibleStatus;
  readonly createdAtMs: number;
  readonly references: References;
  /** The record's text, as `renderRecord` makes it. */
  readonly record: string;
}

/** The change that one event makes to the view. `erase` leaves nothing of the transaction, not even the account. */
export type TransactionChange =
  | { readonly kind: 'show'; readonly revision: number; readonly row: TransactionRow }
  | { readonly kind: 'hide'; readonly revision: number; readonly id: number; readonly accountId: number }
  | { readonly kind: 'erase'; readonly revision: number; readonly id: number };

export function idOfChange(change: TransactionChange): number {
  return change.kind === 'show' ? change.row.id : change.id;
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
  const fields = fieldsOf(data, 'data');
  return isRecordingType(type)
    ? { kind: 'show', revision, row: rowOf(fields, STATUSES[type]) }
    : hide(fields, type === 'TransactionVoided' ? 'voided_at' : 'cancelled_at', revision);
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

/** Returns the state of a transaction after a change. */
export function stateAfter(change: TransactionChange): RowState {
  const { revision } = change;
  if (change.kind === 'show') return { revision, accountId: change.row.accountId, shown: change.row };
  return { revision, accountId: change.kind === 'hide' ? change.accountId : NO_ACCOUNT, shown: null };
}

function hide(data: Fields, timeField: string, revision: number): TransactionChange {
  dateTime(data[timeField], timeField);
  if ((data.reason ?? null) !== null) text(data.reason, 'reason');
  return { kind: 'hide', revision, ...idsOf(data) };
}

function rowOf(data: Fields, status: VisibleStatus): TransactionRow {
  const record = renderRecord(data, status); // it checks all values
  const { corporate, corporate_group: group } = data as Readonly<
    Record<string, { readonly id: number } | null>
  >;
  return {
    ...idsOf(data),
    status,
    createdAtMs: parseDateTime(data.created_at as string) as number,
    references: { corporate_group_id: group?.id ?? null, corporate_id: corporate?.id ?? null },
    record,
  };
}

function idsOf(data: Fields): Pick<TransactionRow, 'id' | 'accountId'> {
  return { id: idOf(data, 'transaction_id'), accountId: idOf(data, 'account_id') };
}

function idOf(data: Fields, field: string): number {
  id(data[field], field);
  return (data[field] as number) + 0; // without the sign of -0
}

/**
 * Renders the record of an event that records a transaction. The members have the order of the specification. Throws a
 * `RecordFault` that names the first value that does not fit.
 */
function renderRecord(data: Fields, status: VisibleStatus): string {
  return (
    `{"id":${id(data.transaction_id, 'transaction_id')},"status":"${status}",` +
    `"created_at":${dateTime(data.created_at, 'created_at')},` +
    `"confirmed_at":${data.confirmed_at === null ? 'null' : dateTime(data.confirmed_at, 'confirmed_at')},` +
    `"correction_reference_id":${data.correction_reference_id === null ? 'null' : id(data.correction_reference_id, 'correction_reference_id')},` +
    `"corporate":${renderNamed(data.corporate, 'corporate')},` +
    `"corporate_group":${renderNullableNamed(data.corporate_group, 'corporate_group')},` +
    `"fuel":${renderFuel(fieldsOf(data.fuel, 'fuel'))},` +
    `"odometer_reading":${nullableInteger(data.odometer_reading, 'odometer_reading')},` +
    `"distance_traveled":${nullableInteger(data.distance_traveled, 'distance_traveled')},` +
    `"fuel_consumption":${data.fuel_consumption === null ? 'null' : decimal2(data.fuel_consumption, 'fuel_consumption')},` +
    `"station":${renderStation(fieldsOf(data.station, 'station'), status)},` +
    `"vehicle":${renderVehicle(fieldsOf(data.vehicle, 'vehicle'))},` +
    `"driver":${renderDriver(fieldsOf(data.driver, 'driver'))},` +
    `"fees":${renderFees(fieldsOf(data.fees, 'fees'))},` +
    `"images":${renderImages(fieldsOf(data.images, 'images'))}}`
  );
}

function renderFuel(fuel: Fields): string {
  return (
    `{"type":${renderNamed(fuel.type, 'fuel.type')},` +
    `"liters":${decimal2(fuel.liters, 'fuel.liters')},` +
    `"price_per_liter":${decimal2(fuel.price_per_liter, 'fuel.price_per_liter')},` +
    `"amount":${decimal2(fuel.amount, 'fuel.amount')}}`
  );
}

function renderStation(station: Fields, status: VisibleStatus): string {
  const name = text(station.name, 'station.name');
  const isExternal = status === 'EXTERNAL';
  const stationId = isExternal ? absent(station.id, 'station.id') : id(station.id, 'station.id');
  const provider = isExternal
    ? absent(station.provider, 'station.provider')
    : renderNamed(station.provider, 'station.provider');
  return `{"id":${stationId},"name":${name},"provider":${provider},"is_external":${isExternal}}`;
}

function renderVehicle(vehicle: Fields): string {
  return (
    `{"id":${id(vehicle.id, 'vehicle.id')},` +
    `"code":${nullableText(vehicle.code, 'vehicle.code')},` +
    `"number_plate":${nullableText(vehicle.number_plate, 'vehicle.number_plate')},` +
    `"chassis_number":${nullableText(vehicle.chassis_number, 'vehicle.chassis_number')},` +
    `"brand":${nullableText(vehicle.brand, 'vehicle.brand')},` +
    `"model":${nullableText(vehicle.model, 'vehicle.model')},` +
    `"year":${nullableInteger(vehicle.year, 'vehicle.year')},` +
    `"department":${renderNullableNamed(vehicle.department, 'vehicle.department')}}`
  );
}

function renderDriver({ id: driverId, name, mobile_number: number }: Fields): string {
  const mobileNumber =
    (number ?? null) === null ? '' : `,"mobile_number":${text(number, 'driver.mobile_number')}`;
  return `{"id":${id(driverId, 'driver.id')},"name":${text(name, 'driver.name')}${mobileNumber}}`;
}

function renderFees(fees: Fields): string {
  return (
    `{"total_fees":${decimal2(fees.total_fees, 'fees.total_fees')},` +
    `"total_vat":${decimal2(fees.total_vat, 'fees.total_vat')},` +
    `"total_amount":${decimal6(fees.total_amount, 'fees.total_amount')}}`
  );
}

function renderImages({ pump, odometer }: Fields): string {
  return (
    `{"pump":${nullableKey(pump, 'images.pump')},` + `"odometer":${nullableKey(odometer, 'images.odometer')}}`
  );
}

function renderNamed(value: unknown, path: string): string {
  const ref = fieldsOf(value, path);
  return `{"id":${id(ref.id, `${path}.id`)},"name":${text(ref.name, `${path}.name`)}}`;
}

function renderNullableNamed(value: unknown, path: string): string {
  return value === null ? 'null' : renderNamed(value, path);
}
