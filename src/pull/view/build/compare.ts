import { setImmediate as nextTurn } from 'node:timers/promises';
import type { TransactionRow } from '../../../../projections/transactions.ts';
import { transactionStream } from '../../../domain/transaction-events.ts';
import type { EventStore } from '../../../event-store/event-store.ts';
import type { Position } from '../../../event-store/recorded-event.ts';
import { type DifferenceKind, differenceOf } from '../compare-rows.ts';
import type { ViewReads } from '../transactions-view.ts';

const ROWS_PER_READ = 500;
const MAX_NAMED = 100;

/** How the served view differs from the new one. */
export interface RowDifference {
  readonly transactionId: number;
  readonly accountId: number;
  readonly kind: DifferenceKind;
}

/**
 * Compares the new view with the served one, record by record, while both follow the log. What differs is a suspect: one
 * of them may not have applied its last event yet.
 */
export class ViewComparison {
  readonly #store: Pick<EventStore, 'readStream'>;
  readonly #view: Pick<ViewReads, 'find' | 'rowsAfter'>;
  /** The one that is built. */
  readonly #generation: number;
  readonly #suspects = new Set<number>();
  /** Visible in the new view. */
  records = 0;
  differing = 0;
  /** The first hundred. */
  readonly named: RowDifference[] = [];

  constructor(
    store: Pick<EventStore, 'readStream'>,
    view: Pick<ViewReads, 'find' | 'rowsAfter'>,
    generation: number,
  ) {
    this.#store = store;
    this.#view = view;
    this.#generation = generation;
  }

  /** Walks both in the order of their ids. */
  async findSuspects(): Promise<void> {
    for (let after = -1; after < Infinity; ) {
      const [built, served] = await Promise.all([
        this.#view.rowsAfter(after, ROWS_PER_READ, this.#generation),
        this.#view.rowsAfter(after, ROWS_PER_READ),
      ]);
      after = Math.min(endOf(built), endOf(served));
      const shown = new Map(served.map((row) => [row.id, row]));
      for (const row of built) {
        if (row.id > after) break;
        this.records += 1;
        if (differenceOf(row, shown.get(row.id)) !== undefined) this.#suspects.add(row.id);
        shown.delete(row.id);
      }
      for (const id of shown.keys()) if (id <= after) this.#suspects.add(id);
      await nextTurn(); // an embedded view is read synchronously
    }
  }

  /** Judges the suspects whose last event both have applied: `reached` is how far both are. True when none is left. */
  async judgeSuspects(reached: Position): Promise<boolean> {
    for (const id of this.#suspects) if (await this.#judge(id, reached)) this.#suspects.delete(id);
    return this.#suspects.size === 0;
  }

  async #judge(id: number, reached: Position): Promise<boolean> {
    const last = await this.#lastEvent(id);
    if (last > reached) return false;
    const expected = (await this.#view.find([id], this.#generation)).get(id)?.shown;
    const shown = (await this.#view.find([id])).get(id)?.shown;
    const kind = differenceOf(expected, shown);
    if (kind === undefined) return true;
    if ((await this.#lastEvent(id)) !== last) return false;
    this.differing += 1;
    const accountId = (expected ?? shown)?.accountId ?? 0;
    if (this.named.length < MAX_NAMED) this.named.push({ transactionId: id, accountId, kind });
    return true;
  }

  async #lastEvent(id: number): Promise<Position> {
    return (await this.#store.readStream(transactionStream(id))).at(-1)?.position ?? 0;
  }
}

/** Up to which id nothing is missing from what was read. */
function endOf(rows: readonly TransactionRow[]): number {
  return rows.length < ROWS_PER_READ ? Infinity : (rows.at(-1)?.id ?? Infinity);
}
