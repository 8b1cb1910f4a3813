import type { AccountState } from '../../../../projections/directory-entry.ts';
import { stateOf } from './packed-row.ts';
import type { DirectoryRow, RowsHead } from './rows.ts';

/** Rows in memory that the threads of a process share: the text of an account stands there once. */
export interface SharedRows extends Pick<RowsHead, 'position' | 'anchor'> {
  readonly pages: readonly SharedPage[];
}

interface SharedPage {
  /** Of each row its account id, revision, position and length, as 64-bit floats. */
  readonly places: SharedArrayBuffer;
  /** The rows, one after the other. */
  readonly packed: SharedArrayBuffer;
}

const PAGE_BYTES = 1024 * 1024;
const NUMBERS_A_ROW = 4;

/** Collects rows, page by page. */
export class SharedPages {
  readonly #pages: SharedPage[] = [];
  #rows: DirectoryRow[] = [];
  #bytes = 0;

  add(row: DirectoryRow): void {
    this.#rows.push(row);
    this.#bytes += row.packed.length;
    if (this.#bytes >= PAGE_BYTES) this.#finishPage();
  }

  finished(): readonly SharedPage[] {
    this.#finishPage();
    return this.#pages;
  }

  #finishPage(): void {
    const numbers = this.#rows.length * NUMBERS_A_ROW;
    const places = new Float64Array(new SharedArrayBuffer(numbers * Float64Array.BYTES_PER_ELEMENT));
    const packed = new Uint8Array(new SharedArrayBuffer(this.#bytes));
    let to = 0;
    for (const [index, row] of this.#rows.entries()) {
      places.set([row.accountId, row.revision, row.position, row.packed.length], index * NUMBERS_A_ROW);
      packed.set(row.packed, to);
      to += row.packed.length;
    }
    this.#pages.push({ places: places.buffer, packed: packed.buffer });
    this.#rows = [];
    this.#bytes = 0;
  }
}

export function* statesOf({ pages }: SharedRows): Generator<AccountState, void> {
  for (const { places, packed } of pages) {
    const [numbers, bytes] = [new Float64Array(places), new Uint8Array(packed)];
    let from = 0;
    for (let at = 0; at < numbers.length; at += NUMBERS_A_ROW) {
      const [accountId = 0, revision = 0, position = 0, length = 0] = numbers.subarray(
        at,
        at + NUMBERS_A_ROW,
      );
      const to = from + length;
      yield stateOf({ accountId, revision, position, bytes, from, to });
      from = to;
    }
  }
}
