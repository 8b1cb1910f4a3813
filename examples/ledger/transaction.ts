/** A record as `parseExactly` returns it, with decimals as text. */
export interface Transaction {
  readonly id: number;
  readonly status: string;
  readonly created_at: string;
  readonly confirmed_at: string | null;
  readonly correction_reference_id: number | null;
  readonly corporate: { readonly id: number };
  readonly vehicle: { readonly number_plate: string | null };
  readonly fuel: { readonly liters: string; readonly price_per_liter: string; readonly amount: string };
  readonly fees: { readonly total_fees: string; readonly total_vat: string; readonly total_amount: string };
  readonly images: unknown;
}

/**
 * Parses JSON with decimals as text, such as `"45.20"`. As a float, 45.20 becomes 45.2, and longer ones are rounded.
 * Integers stay numbers.
 */
export function parseExactly(text: string): unknown {
  return JSON.parse(text, (_name: string, value: unknown, { source = '' }: { source?: string } = {}) =>
    typeof value === 'number' && /[.e]/i.test(source) ? source : value,
  );
}
