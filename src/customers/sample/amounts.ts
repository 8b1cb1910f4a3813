import type { FeeAgreement } from './fleet.ts';

/** The amounts of one fill as decimal strings. */
export interface SampleAmounts {
  readonly amount: string;
  readonly total_fees: string;
  readonly total_vat: string;
  readonly total_amount: string;
}

/**
 * Counts in whole hundredths and millionths, so that no fraction is used. `liters` and `price`
 * are hundredths. The fuel amount is litres × price, rounded to 2 decimals; the total adds fees and VAT to
 * it before these are rounded, as a core system does, and has between 2 and 6 decimals.
 */
export function amountsOf(fill: {
  readonly liters: number;
  readonly price: number;
  readonly isExternal: boolean;
  readonly agreement: FeeAgreement;
}): SampleAmounts {
  const { agreement } = fill;
  const amount = Math.round((fill.liters * fill.price) / 100);
  const isFree = fill.isExternal && !agreement.onExternals;
  const fees = isFree ? 0 : agreement.flat * 10_000 + amount * agreement.share; // millionths, as are vat and the total
  const vat = Math.round((fees * agreement.vatPercent) / 100);
  return {
    amount: printHundredths(amount),
    total_fees: printHundredths(Math.round(fees / 10_000)),
    total_vat: printHundredths(Math.round(vat / 10_000)),
    total_amount: printMillionths(amount * 10_000 + fees + vat),
  };
}

/** `4520` is `"45.20"`. Not negative. */
export function printHundredths(hundredths: number): string {
  return `${Math.floor(hundredths / 100)}.${`${hundredths % 100}`.padStart(2, '0')}`;
}

/** The negative of an amount; zero stays zero. */
export function negated(decimal: string): string {
  return /[1-9]/.test(decimal) ? `-${decimal}` : decimal;
}

function printMillionths(millionths: number): string {
  const fraction = `${millionths % 1_000_000}`.padStart(6, '0').replace(/0{1,4}$/, '');
  return `${Math.floor(millionths / 1_000_000)}.${fraction}`;
}
