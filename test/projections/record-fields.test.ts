import { describe, expect, test } from 'vitest';
import { projectTransaction, type TransactionRow } from '../../projections/transactions.ts';
import type { TransactionEventType } from '../../src/domain/transaction-events.ts';
import { RecordFault } from '../../src/domain/values/printed.ts';
import { withValue } from '../support/transactions/mutations.ts';
import { confirmedData, externalData } from '../support/transactions/records.ts';

type Data = Readonly<Record<string, unknown>>;

function rowOf(type: TransactionEventType, data: Data, revision = 0): TransactionRow {
  const change = projectTransaction(type, data, revision);
  if (change.kind !== 'show') throw new Error('a row was expected');
  return change.row;
}

/** Returns the path of the event's fault; `undefined` if it has none. */
function faultOf(type: TransactionEventType, data: unknown): string | undefined {
  try {
    projectTransaction(type, data, 0);
    return undefined;
  } catch (error) {
    if (error instanceof RecordFault) return error.message;
    throw error;
  }
}

const OBJECTS = { taken: [], refused: [undefined, 'x', 7, true, []] };
const IDS = { taken: [0, 1, 2 ** 53 - 1], refused: [undefined, null, -1, 1.5, 2 ** 53, '1', true, [1], {}] };
const INTEGERS = {
  taken: [0, -7, 2 ** 53 - 1, -(2 ** 53) + 1, null],
  refused: [undefined, 1.5, 2 ** 53, -(2 ** 53), '1', true, {}],
};
const TEXTS = {
  taken: ['', 'x', '"\\\n', 'x'.repeat(1_000), '😀'.repeat(1_000)],
  refused: [undefined, null, 7, true, [], {}, 'x'.repeat(1_001), '😀'.repeat(1_001)],
};
const TIMES = {
  taken: ['2026-09-03T08:15:30Z', '2026-09-03T08:15:30.5+02:00'],
  refused: [undefined, 7, '', '2026-09-03', '2026-02-30T00:00:00Z', ['2026-09-03T08:15:30Z'], true, {}],
};
const decimals = (count: number) => ({
  taken: ['0', '-1', '7.5', `7.${'1'.repeat(count)}`],
  refused: [undefined, 7.5, '', '1e3', '+1', `7.${'1'.repeat(count + 1)}`, true, {}],
});
const orNull = (kind: { readonly taken: readonly unknown[]; readonly refused: readonly unknown[] }) => ({
  taken: [...kind.taken, null],
  refused: kind.refused.filter((value) => value !== null),
});
const notNull = (kind: { readonly taken: readonly unknown[]; readonly refused: readonly unknown[] }) => ({
  ...kind,
  refused: [...kind.refused, null],
});

/** Every field of a confirmed record, with values that it accepts and refuses. */
const FIELDS = Object.entries({
  transaction_id: IDS,
  account_id: IDS,
  created_at: notNull(TIMES),
  confirmed_at: orNull(TIMES),
  correction_reference_id: orNull(IDS),
  corporate: notNull(OBJECTS),
  'corporate.id': IDS,
  'corporate.name': TEXTS,
  corporate_group: orNull(OBJECTS),
  'corporate_group.id': IDS,
  'corporate_group.name': TEXTS,
  fuel: notNull(OBJECTS),
  'fuel.type': notNull(OBJECTS),
  'fuel.type.id': IDS,
  'fuel.type.name': TEXTS,
  'fuel.liters': notNull(decimals(2)),
  'fuel.price_per_liter': notNull(decimals(2)),
  'fuel.amount': notNull(decimals(2)),
  odometer_reading: INTEGERS,
  distance_traveled: INTEGERS,
  fuel_consumption: orNull(decimals(2)),
  station: notNull(OBJECTS),
  'station.id': IDS,
  'station.name': TEXTS,
  'station.provider': notNull(OBJECTS),
  'station.provider.id': IDS,
  'station.provider.name': TEXTS,
  vehicle: notNull(OBJECTS),
  'vehicle.id': IDS,
  'vehicle.code': orNull(TEXTS),
  'vehicle.number_plate': orNull(TEXTS),
  'vehicle.chassis_number': orNull(TEXTS),
  'vehicle.brand': orNull(TEXTS),
  'vehicle.model': orNull(TEXTS),
  'vehicle.year': INTEGERS,
  'vehicle.department': orNull(OBJECTS),
  'vehicle.department.id': IDS,
  'vehicle.department.name': TEXTS,
  driver: notNull(OBJECTS),
  'driver.id': IDS,
  'driver.name': TEXTS,
  fees: notNull(OBJECTS),
  'fees.total_fees': notNull(decimals(2)),
  'fees.total_vat': notNull(decimals(2)),
  'fees.total_amount': notNull(decimals(6)),
  images: notNull(OBJECTS),
  'images.pump': orNull(TEXTS),
  'images.odometer': orNull(TEXTS),
});
const changed = (field: string, value: unknown) => withValue(confirmedData(), field.split('.'), value);

describe('a field of a confirmed record', () => {
  test.each(FIELDS)('%s accepts the values of its kind', (field, { taken }) => {
    for (const value of taken) {
      expect([value, faultOf('TransactionConfirmed', changed(field, value))]).toEqual([value, undefined]);
    }
  });

  test.each(FIELDS)('%s with any other value is refused, and named', (field, { refused }) => {
    for (const value of refused) {
      const named = expect.stringMatching(new RegExp(`^${field.replaceAll('.', '\\.')}: must (be|have) `));
      expect([value, faultOf('TransactionConfirmed', changed(field, value))]).toEqual([value, named]);
    }
  });

  test('driver.mobile_number may be absent or null, or else is a text', () => {
    for (const value of [undefined, null, '', '+15550100']) {
      expect(faultOf('TransactionConfirmed', changed('driver.mobile_number', value))).toBeUndefined();
    }
    for (const value of [7, true, {}, []]) {
      expect(faultOf('TransactionConfirmed', changed('driver.mobile_number', value))).toBe(
        'driver.mobile_number: must be a string',
      );
    }
    expect(faultOf('TransactionConfirmed', changed('driver.mobile_number', '5'.repeat(1_001)))).toBe(
      'driver.mobile_number: must have at most 1000 characters',
    );
  });

  test('is reported as missing in data that is no object', () => {
    for (const data of [undefined, null, 'text', 7, []]) {
      for (const type of [
        'TransactionConfirmed',
        'ExternalTransactionRecorded',
        'TransactionVoided',
      ] as const) {
        expect(faultOf(type, data)).toBe('data: must be an object');
      }
    }
  });
});

test('a negative zero is shown without its sign in every amount, and other negatives keep theirs', () => {
  const amounts = (value: string) => {
    const data = [
      'fuel.liters',
      'fuel.price_per_liter',
      'fuel.amount',
      'fuel_consumption',
      'fees.total_fees',
      'fees.total_vat',
      'fees.total_amount',
    ].reduce<Data>((at, field) => withValue(at, field.split('.'), value) as Data, confirmedData());
    const { record } = rowOf('TransactionConfirmed', data);
    return [
      ...record.matchAll(/"(?:liters|price_per_liter|amount|fuel_consumption|total_\w+)":([^,}]+)/g),
    ].map(([, shown]) => shown);
  };
  expect(amounts('-0.00')).toEqual([...Array.from({ length: 6 }, () => '0.00'), '0.000000']);
  expect(amounts('-0.01')).toEqual([...Array.from({ length: 6 }, () => '-0.01'), '-0.010000']);
});

test('an id of negative zero is shown as zero in every field', () => {
  const row = rowOf('TransactionConfirmed', confirmedData({ transaction_id: -0, account_id: -0 }));
  expect([row.id, row.accountId]).toEqual([0, 0]);
  expect(row.record).toMatch(/^\{"id":0,/);
});

describe('the station of an external record', () => {
  const external = (station: unknown) => faultOf('ExternalTransactionRecorded', externalData({ station }));

  test('has only a name', () => {
    expect(external({ name: 'Village Fuel', id: null, provider: null })).toBeUndefined();
    expect(external({ name: null })).toBe('station.name: must be a string');
    const reason = 'must be absent or null: the station is external';
    expect(external({ name: 'x', id: 0 })).toBe(`station.id: ${reason}`);
    expect(external({ name: 'x', provider: { id: 4, name: 'Petrona' } })).toBe(`station.provider: ${reason}`);
    expect(external({ name: 'x', provider: false })).toBe(`station.provider: ${reason}`);
  });
});

describe('a field of a withdrawal', () => {
  const withdrawals = [
    ['TransactionVoided', 'voided_at'],
    ['TransactionCancelled', 'cancelled_at'],
  ] as const;
  const valid = { transaction_id: 501, account_id: 7, reason: 'duplicate' };

  test.each(withdrawals)('%s is checked as strictly as any other', (type, timeField) => {
    const data = { ...valid, [timeField]: '2026-09-04T10:00:00Z' };
    const fault = (overrides: object) => faultOf(type, { ...data, ...overrides });
    for (const reason of [undefined, null, '', 'duplicate']) expect(fault({ reason })).toBeUndefined();
    for (const reason of [7, true, {}]) expect(fault({ reason })).toBe('reason: must be a string');
    expect(fault({ reason: 'x'.repeat(1_000) })).toBeUndefined();
    expect(fault({ reason: 'x'.repeat(1_001) })).toBe('reason: must have at most 1000 characters');
    for (const id of [null, -1, '501']) {
      expect(fault({ transaction_id: id })).toMatch(/^transaction_id: must be an integer/);
      expect(fault({ account_id: id })).toMatch(/^account_id: must be an integer/);
    }
    for (const time of [undefined, null, 'yesterday', 7]) {
      expect(fault({ [timeField]: time })).toMatch(
        new RegExp(`^${timeField}: must be an ISO 8601 date-time that exists`),
      );
    }
  });
});
