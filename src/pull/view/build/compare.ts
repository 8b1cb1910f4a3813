import { REFERENCES, type TransactionRow } from '../../../../projections/transactions.ts';
import { world } from '../../../base/world.ts';
import { transactionStream } from '../../../domain/transaction-events.ts';
import type { EventStore } from '../../../event-store/event-store.ts';
import type { Position } from '../../../event-store/recorded-event.ts';
import type { ViewReads } from '../transactions-view.ts';

const ROWS_PER_READ = 500;
const MAX_NAMED = 100;

/** The served view lacks a record, shows one that it should not show, or shows one with other content. */
export type DifferenceKind = 'missing' | 'surplus' | 'differing';

/** A transaction that the served view shows otherwise than the new one. */
export interface RowDifference {
  readonly transactionId: number;
  readonly accountId: number;
  readonly kind: DifferenceKind;
}

export interface ViewComparison {
  /** The number of visible records in the new view. */
  readonly records: number;
  readonly differing: number;
  /** The first hundred differences. */
  readonly named: readonly RowDifference[];
  /** Judges the suspects whose last event both views have applied, up to `reached`. Returns true when none is left. */
  judgeSuspects(reached: Position): Promise<boolean>;
}

/**
 * Compares the new view, a generation that is being built, with the served one, record by record in the order of their
 * ids, while both follow the log. What differs is a suspect: one of them may not have applied its last event yet.
 */
export async function compareViews(
  store: Pick<EventStore, 'readStream'>,
  view: Pick<ViewReads, 'find' | 'rowsAfter'>,
  generation: number,
): Promise<ViewComparison> {
  const suspects = new Set<number>();
  const named: RowDifference[] = [];
  const comparison = { records: 0, differing: 0, named, judgeSuspects };
  for (let after = -1; after < Infinity; ) {
    const [built, served] = await Promise.all([
      view.rowsAfter(after, ROWS_PER_READ, generation),
      view.rowsAfter(after, ROWS_PER_READ),
    ]);
    after = Math.min(endOf(built), endOf(served));
    const shown = new Map(served.map((row) => [row.id, row]));
    for (const row of built) {
      if (row.id > after) break;
      comparison.records += 1;
      if (differenceOf(row, shown.get(row.id)) !== undefined) suspects.add(row.id);
      shown.delete(row.id);
    }
    for (const id of shown.keys()) if (id <= after) suspects.add(id);
    await world.nextTurn(); // an embedded view is read synchronously
  }
  return comparison;

  async function judgeSuspects(reached: Position): Promise<boolean> {
    for (const id of suspects) if (await judge(id, reached)) suspects.delete(id);
    return suspects.size === 0;
  }

  async function judge(id: number, reached: Position): Promise<boolean> {
    const last = await lastEvent(id);
    if (last > reached) return false;
    const expected = (await view.find([id], generation)).get(id)?.shown;
    const shown = (await view.find([id])).get(id)?.shown;
    const kind = differenceOf(expected, shown);
    if (kind === undefined) return true;
    if ((await lastEvent(id)) !== last) return false;
    comparison.differing += 1;
    const accountId = (expected ?? shown)?.accountId ?? 0;
    if (named.length < MAX_NAMED) named.push({ transactionId: id, accountId, kind });
    return true;
  }

  async function lastEvent(id: number): Promise<Position> {
    return (await store.readStream(transactionStream(id))).at(-1)?.position ?? 0;
  }
}

/** Returns the id up to which these rows are complete. */
function endOf(rows: readonly TransactionRow[]): number {
  return rows.length < ROWS_PER_READ ? Infinity : (rows.at(-1)?.id ?? Infinity);
}

/** Returns how the shown row differs from the expected one; `undefined` if it does not. */
export function differenceOf(
  expected: TransactionRow | null | undefined,
  shown: TransactionRow | null | undefined,
): DifferenceKind | undefined {
  if (!expected) return shown ? 'surplus' : undefined;
  if (!shown) return 'missing';
  return isSame(expected, shown) ? undefined : 'differing';
}

/** Compares each member by name, the short ones first: for millions of rows a loop over the names would take most of the time. */
function isSame(one: TransactionRow, other: TransactionRow): boolean {
  return (
    one.id === other.id &&
    one.accountId === other.accountId &&
    one.status === other.status &&
    one.createdAtMs === other.createdAtMs &&
    REFERENCES.every((name) => one.references[name] === other.references[name]) &&
    one.mobileNumber === other.mobileNumber &&
    one.pump === other.pump &&
    one.odometer === other.odometer &&
    one.fees === other.fees &&
    one.head === other.head
  );
}
