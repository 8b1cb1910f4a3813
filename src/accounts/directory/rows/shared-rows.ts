import type { AccountState } from '../fold/directory-entry.ts';
import { packedRow, unpackedRow } from './packed-row.ts';
import { type DirectoryRow, pageOf, type RowsHead, type RowsPage } from './rows.ts';

/** Rows in memory that the threads of a process share, so that the text of each account is held only once. */
export interface SharedRows extends Pick<RowsHead, 'position' | 'anchor'> {
  readonly pages: readonly SharedPage[];
}

export interface SharedPage {
  /** The account id, revision, position and length of each row, as 64-bit floats. */
  readonly places: SharedArrayBuffer;
  /** The rows, one after the other. */
  readonly packed: SharedArrayBuffer;
}

const NUMBERS_A_ROW = 4;
const ROWS_A_PAGE = 500;

export function sharedPage({ places, packed }: RowsPage): SharedPage {
  const bytes = places.length * NUMBERS_A_ROW * Float64Array.BYTES_PER_ELEMENT;
  const numbers = new Float64Array(new SharedArrayBuffer(bytes));
  let at = 0;
  for (const place of places) for (const number of place) numbers[at++] = number;
  const text = new Uint8Array(new SharedArrayBuffer(packed.length));
  text.set(packed);
  return { places: numbers.buffer, packed: text.buffer };
}

/** Makes shared rows from a directory that was not read from the store. */
export function sharedRows(
  states: Iterable<AccountState>,
  at: Pick<SharedRows, 'position' | 'anchor'>,
): SharedRows {
  const pages: SharedPage[] = [];
  let rows: DirectoryRow[] = [];
  for (const state of states) {
    if (rows.push(packedRow(state)) < ROWS_A_PAGE) continue;
    pages.push(sharedPage(pageOf(rows)));
    rows = [];
  }
  pages.push(sharedPage(pageOf(rows)));
  return { ...at, pages };
}

export function* statesOf({ pages }: SharedRows): Generator<AccountState, void> {
  for (const { places, packed } of pages) {
    const [numbers, bytes] = [new Float64Array(places), Buffer.from(packed)];
    let from = 0;
    for (let at = 0; at < numbers.length; at += NUMBERS_A_ROW) {
      const [accountId, revision, position] = [numbers[at] ?? 0, numbers[at + 1] ?? 0, numbers[at + 2] ?? 0];
      const to = from + (numbers[at + 3] ?? 0);
      yield unpackedRow({ accountId, revision, position, bytes, from, to });
      from = to;
    }
  }
}
