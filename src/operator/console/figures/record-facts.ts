import { parseDateTime } from '../../../domain/values/date-time.ts';

/** The members of a record that a page shows: ids, times and amounts, but nobody's name or number. */
const SHOWN = {
  account: 'account_id',
  corporate: 'corporate.id',
  corporate_group: 'corporate_group.id',
  corrects: 'correction_reference_id',
  created_at: 'created_at',
  confirmed_at: 'confirmed_at',
  fuel_type: 'fuel.type.id',
  liters: 'fuel.liters',
  price_per_liter: 'fuel.price_per_liter',
  amount: 'fuel.amount',
  fees: 'fees.total_fees',
  vat: 'fees.total_vat',
  total_amount: 'fees.total_amount',
  station: 'station.id',
  vehicle: 'vehicle.id',
  driver: 'driver.id',
} as const;
const DECIMAL = /^-?\d{1,30}(\.\d{1,30})?$/;

/** Returns these members by name. Values other than ids, times and decimals are left out, whatever an event holds. */
export function recordFacts(data: unknown): Readonly<Record<string, string | number>> {
  return Object.fromEntries(
    Object.entries(SHOWN).flatMap(([name, path]): [string, string | number][] => {
      const value = memberOf(data, path);
      const isShown =
        typeof value === 'number' ||
        (typeof value === 'string' && (DECIMAL.test(value) || parseDateTime(value) !== undefined));
      return isShown ? [[name, value]] : [];
    }),
  );
}

function memberOf(data: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
    return (value as Record<string, unknown>)[name];
  }, data);
}
