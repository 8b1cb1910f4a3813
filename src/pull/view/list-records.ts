import type { VisibleStatus } from '../../../projections/transactions.ts';
import type { PageQuery, PageRow, Place, TransactionsView } from './transactions-view.ts';

/** Rows of one page: those of a list that is filtered by number plate are read in few round trips. */
const PAGE = 500;

export interface ListedRecord extends Place {
  readonly status: VisibleStatus;
  readonly corporateId: number;
  readonly numberPlate: string | null;
  /** As printed, with all its decimals. */
  readonly totalAmount: string;
}

/** Reads the records of a query newest first, page by page, without a limit of time or number. */
export async function* listRecords(
  view: TransactionsView,
  query: Omit<PageQuery, 'limit'>,
  pageSize = PAGE,
): AsyncGenerator<ListedRecord> {
  let after = query.after;
  for (;;) {
    const { rows, hasMore } = await view.page({ ...query, after, limit: Math.min(pageSize, PAGE) });
    for (const row of rows) yield listed(row);
    after = rows.at(-1);
    if (!hasMore) return;
  }
}

/** Whether the number plate contains a text, whatever their spaces and capitals. */
export function hasPlate({ numberPlate }: ListedRecord, text: string): boolean {
  return numberPlate !== null && plain(numberPlate).includes(plain(text));
}

function plain(text: string): string {
  return text.replaceAll(/\s/g, '').toUpperCase();
}

interface Head {
  readonly status: VisibleStatus;
  readonly corporate: { readonly id: number };
  readonly vehicle: { readonly number_plate: string | null };
}

function listed({ id, createdAtMs, head, fees }: PageRow): ListedRecord {
  const { status, corporate, vehicle } = JSON.parse(`${head.toString()}}}`) as Head;
  const totalAmount = /"total_amount":([^,}]+)/.exec(fees.toString())?.[1] ?? '';
  return {
    id,
    createdAtMs,
    status,
    corporateId: corporate.id,
    numberPlate: vehicle.number_plate,
    totalAmount,
  };
}
