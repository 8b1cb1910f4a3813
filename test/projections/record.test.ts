import fc from 'fast-check';
import { expect, test } from 'vitest';
import { assertRecord, NO_RECORD, recordText, redactedRecord } from '../../projections/record.ts';
import { projectTransaction } from '../../projections/transactions.ts';
import { confirmedData, sampleRecord } from '../support/transactions/records.ts';

const terms = {
  mobileNumber: true,
  presign: (key: string) => `https://photos.example/${key}`,
  expiresAt: '2026-09-03T09:15:30.000Z',
};

function record(overrides: Readonly<Record<string, unknown>> = {}): string {
  const change = projectTransaction('TransactionConfirmed', confirmedData(overrides), 0);
  if (change.kind !== 'show') throw new Error('a confirmed transaction is shown');
  return change.row.record;
}

test('has the members of the contract in its order, and amounts with their decimals', () => {
  expect(recordText(record(), terms)).toBe(
    '{"id":501,"status":"CONFIRMED","created_at":"2026-09-03T08:15:30.123Z",' +
      '"confirmed_at":"2026-09-03T08:16:02.000Z","correction_reference_id":null,' +
      '"corporate":{"id":31,"name":"North Depot"},"corporate_group":{"id":3,"name":"Depots"},' +
      '"fuel":{"type":{"id":2,"name":"Diesel"},"liters":45.20,"price_per_liter":2.18,"amount":98.54},' +
      '"odometer_reading":120345,"distance_traveled":512,"fuel_consumption":8.83,' +
      '"station":{"id":88,"name":"Ring Road 12","provider":{"id":4,"name":"Petrona"},"is_external":false},' +
      '"vehicle":{"id":900,"code":"V-17","number_plate":"ABC 123","chassis_number":null,"brand":"Isuzu",' +
      '"model":"D-Max","year":2022,"department":{"id":5,"name":"Logistics"}},' +
      '"driver":{"id":77,"name":"Sam Field","mobile_number":"+15550100"},' +
      '"fees":{"total_fees":1.50,"total_vat":0.23,"total_amount":100.270000},' +
      '"images":{"pump":"https://photos.example/photos/501/pump.jpg","odometer":null,' +
      '"expires_at":"2026-09-03T09:15:30.000Z"}}',
  );
});

test('leaves the mobile number out when the key does not show it', () => {
  const { driver } = JSON.parse(recordText(record(), { ...terms, mobileNumber: false }));
  expect(driver).toEqual({ id: 77, name: 'Sam Field' });
});

test('leaves the mobile number out when none was recorded', () => {
  const without = record({ driver: { id: 77, name: 'Sam Field', mobile_number: null } });
  expect(JSON.parse(recordText(without, terms)).driver).toEqual({ id: 77, name: 'Sam Field' });
});

test('prints when images expire even where there are none', () => {
  const { images } = JSON.parse(recordText(record({ images: { pump: null, odometer: null } }), terms));
  expect(images).toEqual({ pump: null, odometer: null, expires_at: terms.expiresAt });
});

test('shows no URL for an empty object key, which would name the bucket itself', () => {
  const { images } = JSON.parse(recordText(record({ images: { pump: '', odometer: 'a' } }), terms));
  expect(images.pump).toBeNull();
  expect(images.odometer).toBe('https://photos.example/a');
});

const text = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom(
    '},"fees":{',
    ',"images":{"pump":',
    ',"driver":{"id":',
    ',"mobile_number":',
    '","odometer":',
    '\\',
  ),
);

test('is cut only at its own members, whatever its texts are', () => {
  const agrees = (name: string, number: string | null, pump: string, odometer: string | null): void => {
    const mobileNumber = number === null ? null : JSON.stringify(number);
    const sample = sampleRecord({ id: 1, driverName: JSON.stringify(name), mobileNumber, pump, odometer });
    const { driver, images } = JSON.parse(recordText(sample, { ...terms, presign: encodeURIComponent }));
    expect(driver).toEqual({ id: 1, name, ...(number !== null && { mobile_number: number }) });
    const keys = [images.pump, images.odometer].map((key) => decodeURIComponent(key ?? ''));
    expect(keys).toEqual([pump, odometer ?? '']);
    const redacted = sampleRecord({ id: 1, driverName: '"REDACTED"', pump, odometer });
    expect(redactedRecord(sample)).toBe(redacted);
  };
  fc.assert(fc.property(text, fc.option(text), text, fc.option(text), agrees));
});

test('is refused in the forms in which earlier builds stored it', () => {
  const former = [
    '{"id":1,"driver":{"id":1,"name":"x"\n{}\n\n\n',
    JSON.stringify({ head: '{"id":1,"driver":{"id":1,"name":"x"', fees: '{}', pump: null, odometer: null }),
  ];
  for (const record of former) {
    expect(() => recordText(record, terms)).toThrow(/does not read/);
    expect(() => assertRecord(record)).toThrow(/does not read/);
  }
  expect(() => assertRecord(NO_RECORD)).not.toThrow();
});
