import { projectTransaction, type TransactionRow } from '../../../projections/transactions.ts';
import type { ViewChange } from '../../../src/records/project-event.ts';

/** The data of a valid `TransactionConfirmed`, with any member replaced. */
export function confirmedData(overrides: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return {
    transaction_id: 501,
    account_id: 7,
    created_at: '2026-09-03T08:15:30.123Z',
    confirmed_at: '2026-09-03T08:16:02.000Z',
    correction_reference_id: null,
    corporate: { id: 31, name: 'North Depot' },
    corporate_group: { id: 3, name: 'Depots' },
    fuel: { type: { id: 2, name: 'Diesel' }, liters: '45.20', price_per_liter: '2.18', amount: '98.54' },
    odometer_reading: 120345,
    distance_traveled: 512,
    fuel_consumption: '8.83',
    station: { id: 88, name: 'Ring Road 12', provider: { id: 4, name: 'Petrona' } },
    vehicle: {
      id: 900,
      code: 'V-17',
      number_plate: 'ABC 123',
      chassis_number: null,
      brand: 'Isuzu',
      model: 'D-Max',
      year: 2022,
      department: { id: 5, name: 'Logistics' },
    },
    driver: { id: 77, name: 'Sam Field', mobile_number: '+15550100' },
    fees: { total_fees: '1.50', total_vat: '0.23', total_amount: '100.270000' },
    images: { pump: 'photos/501/pump.jpg', odometer: null },
    ...overrides,
  };
}

/** The data of a valid `ExternalTransactionRecorded`. */
export function externalData(overrides: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return confirmedData({ station: { name: 'Village Fuel' }, confirmed_at: null, ...overrides });
}

export interface SampleRow extends Partial<Omit<TransactionRow, 'id'>>, SampleRecord {
  readonly corporateId?: number;
  readonly corporateGroupId?: number | null;
}

export function sampleRow({
  corporateId = 31,
  corporateGroupId = null,
  ...sample
}: SampleRow): TransactionRow {
  const { driverName, mobileNumber, fees, pump, odometer, ...row } = sample;
  return {
    accountId: 7,
    status: 'CONFIRMED',
    createdAtMs: 1_000,
    references: { corporate_group_id: corporateGroupId, corporate_id: corporateId },
    record: sampleRecord(sample),
    ...row,
  };
}

/** A record of few members. Names and numbers are JSON texts. */
export interface SampleRecord {
  readonly id: number;
  readonly driverName?: string;
  readonly mobileNumber?: string | null;
  readonly fees?: string;
  readonly pump?: string | null;
  readonly odometer?: string | null;
}

export function sampleRecord(sample: SampleRecord): string {
  const { id, driverName = '"x"', mobileNumber = null, fees = '{}', pump = null, odometer = null } = sample;
  const mobile = mobileNumber === null ? '' : `,"mobile_number":${mobileNumber}`;
  const images = JSON.stringify({ pump, odometer });
  return `{"id":${id},"driver":{"id":1,"name":${driverName}${mobile}},"fees":${fees},"images":${images}}`;
}

/** The change of a transaction's first event. By default its position is its id. */
export function showing(sample: SampleRow, place: { revision?: number; position?: number } = {}): ViewChange {
  return {
    position: place.position ?? sample.id,
    stream: `transaction-${sample.id}`,
    type: sample.status === 'EXTERNAL' ? 'ExternalTransactionRecorded' : 'TransactionConfirmed',
    change: { kind: 'show', revision: place.revision ?? 0, row: sampleRow(sample) },
  };
}

/** Like `showing`, but with the whole record. If the id is odd, the transaction is external. */
export function showingRecord(id: number): ViewChange {
  const [type, data] =
    id % 2 === 0
      ? (['TransactionConfirmed', confirmedData({ transaction_id: id })] as const)
      : (['ExternalTransactionRecorded', externalData({ transaction_id: id })] as const);
  return { position: id, stream: `transaction-${id}`, type, change: projectTransaction(type, data, 0) };
}

export function hiding(
  id: number,
  place: { accountId?: number; revision?: number; position?: number } = {},
): ViewChange {
  return {
    position: place.position ?? 1_000_000 + id,
    stream: `transaction-${id}`,
    type: 'TransactionVoided',
    change: { kind: 'hide', revision: place.revision ?? 1, id, accountId: place.accountId ?? 7 },
  };
}
