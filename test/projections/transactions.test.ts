import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  idOfChange,
  projectTransaction,
  stateAfter,
  type TransactionChange,
  type TransactionRow,
} from '../../projections/transactions.ts';
import { RecordFault } from '../../src/domain/values/printed.ts';
import { confirmedData, externalData } from '../support/transactions/records.ts';

const published = (type: string) =>
  JSON.parse(readFileSync(join(import.meta.dirname, `../../docs/events/${type}.example.json`), 'utf8'));

function rowOf(change: TransactionChange): TransactionRow {
  if (change.kind !== 'show') throw new Error('a row was expected');
  return change.row;
}

const confirmedRow = (overrides: Readonly<Record<string, unknown>> = {}): TransactionRow =>
  rowOf(projectTransaction('TransactionConfirmed', confirmedData(overrides), 0));

describe('the rendered record', () => {
  it('of the published confirmed transaction is this text, byte for byte', () => {
    const { type, data } = published('TransactionConfirmed');
    expect(projectTransaction(type, data, 0)).toEqual({
      kind: 'show',
      revision: 0,
      row: {
        id: 501,
        accountId: 7,
        status: 'CONFIRMED',
        createdAtMs: Date.UTC(2026, 8, 3, 8, 15, 30, 123),
        references: { corporate_group_id: 3, corporate_id: 31 },
        record:
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
          '"images":{"pump":"photos/501/pump.jpg","odometer":null}}',
      },
    });
  });

  it('of the published external transaction is this text, byte for byte', () => {
    const { type, data } = published('ExternalTransactionRecorded');
    expect(projectTransaction(type, data, 0)).toEqual({
      kind: 'show',
      revision: 0,
      row: {
        id: 502,
        accountId: 7,
        status: 'EXTERNAL',
        createdAtMs: Date.UTC(2026, 8, 3, 9),
        references: { corporate_group_id: null, corporate_id: 51 },
        record:
          '{"id":502,"status":"EXTERNAL","created_at":"2026-09-03T09:00:00.000Z","confirmed_at":null,' +
          '"correction_reference_id":null,"corporate":{"id":51,"name":"Lone Yard"},"corporate_group":null,' +
          '"fuel":{"type":{"id":2,"name":"Diesel"},"liters":30.00,"price_per_liter":2.10,"amount":63.00},' +
          '"odometer_reading":null,"distance_traveled":null,"fuel_consumption":null,' +
          '"station":{"id":null,"name":"Village Fuel","provider":null,"is_external":true},' +
          '"vehicle":{"id":901,"code":null,"number_plate":"XYZ 9","chassis_number":null,"brand":null,' +
          '"model":null,"year":null,"department":null},"driver":{"id":78,"name":"Lee Moss"},' +
          '"fees":{"total_fees":0.00,"total_vat":0.00,"total_amount":63.000000},' +
          '"images":{"pump":null,"odometer":null}}',
      },
    });
  });

  it('pads fewer decimals with zeros, in negative amounts too', () => {
    const { record } = confirmedRow({
      fuel: { type: { id: 2, name: 'Diesel' }, liters: '-45.2', price_per_liter: '2', amount: '-90.4' },
      fees: { total_fees: '-1', total_vat: '0', total_amount: '-91.4' },
    });
    expect(record).toContain('"liters":-45.20,"price_per_liter":2.00,"amount":-90.40}');
    expect(record).toContain('"fees":{"total_fees":-1.00,"total_vat":0.00,"total_amount":-91.400000}');
  });

  it('prints amounts that no float could hold', () => {
    const { record } = confirmedRow({
      fees: { total_fees: '0.10', total_vat: '0.20', total_amount: '9007199254740993.000001' },
    });
    expect(record).toContain('"total_amount":9007199254740993.000001}');
  });

  it('shows the total as recorded, also where it is not the sum of its rounded parts', () => {
    const { record } = confirmedRow({
      fees: { total_fees: '1.50', total_vat: '0.23', total_amount: '100.265499' },
    });
    expect(record).toContain('"total_amount":100.265499}');
  });

  it('refuses more decimals than the field has, and names the field', () => {
    expect(() => confirmedRow({ fuel_consumption: '8.831' })).toThrow(/^fuel_consumption: /);
    expect(() =>
      confirmedRow({ fees: { total_fees: '1.50', total_vat: '0.23', total_amount: '1.0000001' } }),
    ).toThrow(/^fees\.total_amount: /);
  });

  it('shows an offset as Z and cuts digits past milliseconds', () => {
    const { createdAtMs, record } = confirmedRow({
      created_at: '2026-09-03T23:30:00.1239999-05:30',
      confirmed_at: '2026-09-04T05:00:01+00:00',
    });
    expect(createdAtMs).toBe(Date.UTC(2026, 8, 4, 5, 0, 0, 123));
    expect(record).toContain(
      '"created_at":"2026-09-04T05:00:00.123Z","confirmed_at":"2026-09-04T05:00:01.000Z"',
    );
  });

  it.each([
    ['null', { id: 77, name: 'Sam Field', mobile_number: null }],
    ['absent', { id: 77, name: 'Sam Field' }],
  ])('has no mobile number where it is %s in the event', (_, driver) => {
    expect(confirmedRow({ driver }).record).toContain('"driver":{"id":77,"name":"Sam Field"},');
  });

  it('carries the id of the transaction that a refund corrects', () => {
    expect(confirmedRow({ correction_reference_id: 400 }).record).toContain('"correction_reference_id":400,');
  });

  it('keeps names of any script, quotes and control characters as JSON', () => {
    const name = 'نقل "النور"\n\\ Žižkov 车队 \u2028';
    const { record } = confirmedRow({ corporate: { id: 31, name } });
    expect(record).toContain(`"corporate":{"id":31,"name":${JSON.stringify(name)}}`);
  });

  it('never shows a field that it does not know', () => {
    const { record } = confirmedRow({
      driver: { id: 77, name: 'Sam Field', email: 'sam@example.test' },
      secret: 1,
    });
    expect(record).not.toMatch(/email|example\.test|secret/);
  });

  it('of an external transaction is refused when its station has an id or a provider', () => {
    const render = (station: unknown) => () =>
      projectTransaction('ExternalTransactionRecorded', externalData({ station }), 0);
    expect(render({ name: 'Village Fuel', id: null, provider: null })).not.toThrow();
    expect(render({ name: 'Village Fuel', id: 88 })).toThrow(RecordFault);
    expect(render({ name: 'Village Fuel', provider: { id: 4, name: 'Petrona' } })).toThrow(RecordFault);
  });
});

describe('a void and a cancellation', () => {
  it.each([
    ['TransactionVoided', 501],
    ['TransactionCancelled', 502],
  ] as const)('hide the transaction: %s', (type, id) => {
    expect(projectTransaction(type, published(type).data, 1)).toEqual({
      kind: 'hide',
      revision: 1,
      id,
      accountId: 7,
    });
  });

  it('are refused without their time', () => {
    const data = { transaction_id: 501, account_id: 7, voided_at: '2026-09-04T10:00:00Z' };
    expect(() => projectTransaction('TransactionVoided', data, 1)).not.toThrow();
    expect(() => projectTransaction('TransactionCancelled', data, 1)).toThrow(/^cancelled_at: /);
    expect(() => projectTransaction('TransactionCancelled', null, 1)).toThrow(/^data: /);
  });
});

describe('a change', () => {
  const show = (revision: number, overrides = {}) =>
    projectTransaction('TransactionConfirmed', confirmedData(overrides), revision) as Extract<
      TransactionChange,
      { kind: 'show' }
    >;
  const hide = (revision: number, accountId = 7): TransactionChange =>
    projectTransaction(
      'TransactionVoided',
      { transaction_id: 501, account_id: accountId, voided_at: '2026-09-04T10:00:00Z' },
      revision,
    );
  it('leads to a row', () => {
    const { row } = show(3);
    expect(stateAfter(show(3))).toEqual({ revision: 3, accountId: 7, shown: row });
    expect(stateAfter(hide(4, 8))).toEqual({ revision: 4, accountId: 8, shown: null });
    const erased = stateAfter({ kind: 'erase', revision: 5, id: 501 });
    expect(erased).toEqual({ revision: 5, accountId: 0, shown: null });
  });

  it('names the transaction that it is about', () => {
    expect(idOfChange(show(0))).toBe(501);
    expect(idOfChange(hide(0))).toBe(501);
    expect(idOfChange({ kind: 'erase', revision: 0, id: 501 })).toBe(501);
  });
});
