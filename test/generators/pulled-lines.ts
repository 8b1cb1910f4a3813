import { Agent, fetch } from 'undici';

/** As in csharp/Pull.cs. */
const PAGES = 2;
const LIMIT = 50;

interface Access {
  readonly baseUrl: string;
  /** The certificate to trust, in PEM. */
  readonly ca: string;
  readonly key: string;
  readonly from: string;
  readonly to: string;
}

/** A text, or a number as it is written. */
type Written = string | null;
type Named = { readonly id: Written; readonly name: string };

interface Transaction {
  readonly id: Written;
  readonly status: string;
  readonly created_at: string;
  readonly confirmed_at: Written;
  readonly correction_reference_id: Written;
  readonly corporate_group: Named | null;
  readonly station: { readonly id: Written; readonly provider: Named | null };
  readonly vehicle: { readonly number_plate: Written };
  readonly fuel_consumption: Written;
  readonly fuel: Readonly<Record<'liters' | 'price_per_liter' | 'amount', Written>>;
  readonly fees: Readonly<Record<'total_fees' | 'total_vat' | 'total_amount', Written>>;
}

interface Page {
  readonly data: readonly Transaction[];
  readonly pagination: { readonly next_cursor: string };
}

/**
 * Returns the lines that csharp/Pull.cs prints for a client that reads the API rightly: each transaction with the numbers as
 * the API writes them, and the code of a refusal.
 */
export async function pulledLines({ baseUrl, ca, key, from, to }: Access): Promise<string[]> {
  const dispatcher = new Agent({ connect: { ca } });
  const lines: string[] = [];
  const query = new URLSearchParams({ from, to, limit: String(LIMIT) });
  try {
    for (let page = 0; page < PAGES; page += 1) {
      const answer = await fetch(`${baseUrl}/transactions?${query}`, {
        headers: { 'X-API-Key': key },
        dispatcher,
      });
      const text = await answer.text();
      if (!answer.ok) throw new Error(`the mock answered ${answer.status}: ${text}`);
      const { data, pagination }: Page = JSON.parse(text, keepSource);
      lines.push(...data.map(lineOf));
      query.set('cursor', pagination.next_cursor);
    }
  } finally {
    await dispatcher.close();
  }
  return [...lines, 'VALIDATION_FAILED'];
}

function lineOf(one: Transaction): string {
  const { fuel, fees, station } = one;
  const values = [
    ...[one.id, one.status, one.created_at, one.confirmed_at, one.correction_reference_id],
    ...[one.corporate_group?.name, station.id, station.provider?.name, one.vehicle.number_plate],
    ...[one.fuel_consumption, fuel.liters, fuel.price_per_liter, fuel.amount],
    ...[fees.total_fees, fees.total_vat, fees.total_amount],
  ];
  return values.map((value) => value ?? 'null').join('|');
}

function keepSource(_name: string, value: unknown, context?: { readonly source: string }): unknown {
  return typeof value === 'number' ? context?.source : value;
}
