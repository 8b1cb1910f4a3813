import { steadyClock } from '../../../base/clock.ts';
import { world } from '../../../base/world.ts';
import type { AnyRow, TablePlan, Value } from '../../../tables/plan.ts';
import { comparing, type Selected } from '../../../tables/selected.ts';
import type { Wanted } from '../../tables/as-tables.ts';
import type { Database } from '../driver/database.ts';
import { type Sql, selectOf, startsOf } from './sql.ts';

/** How long a merge keeps the event loop at a time. */
const SLICE_MS = 2;
/** For how many runs a statement finds the start: it takes about a millisecond. */
const STARTS_AT_ONCE = 256;

/** The place that a run has reached. */
interface Head {
  /** The run's value of each column in `equals`. */
  readonly run: readonly Value[];
  /** The next row. Before it is read, only its value in the first column of the order is known. */
  readonly row: AnyRow;
  readonly isRead: boolean;
}

interface MergeParts {
  readonly db: Pick<Database, 'read'>;
  readonly all: (sql: Sql) => AnyRow[];
}

/**
 * Merges many runs: it finds where each begins, and then reads row after row, each from the run that is next. It gives the
 * event loop a turn every few milliseconds, so the rows are not those of one moment: what is written meanwhile may be
 * missing. A row that stays in its run is not.
 */
export async function mergeRuns(
  table: TablePlan,
  found: Selected,
  wanted: Wanted,
  { db, all }: MergeParts,
): Promise<AnyRow[]> {
  const rows: AnyRow[] = [];
  const steps = mergeSteps(table, found, wanted, { all, rows });
  const slice = (): boolean => {
    const endMs = steadyClock.now() + SLICE_MS;
    do if (steps.next().done === true) return true;
    while (steadyClock.now() < endMs);
    return false;
  };
  while (!db.read(slice)) await world.nextTurn();
  return rows;
}

/** Adds the rows to `rows`. Each step makes at most one statement. */
function* mergeSteps(
  table: TablePlan,
  found: Selected,
  { columns, limit }: Wanted,
  { all, rows }: Pick<MergeParts, 'all'> & { readonly rows: AnyRow[] },
): Generator<void, void> {
  const { equals, order, descending } = found;
  const [first = ''] = order;
  const heads: Head[] = [];
  for (const part of partsOf(found)) {
    for (const row of all(startsOf(table, part))) {
      const run = equals.map(([column]) => row[column] ?? null);
      if (row[first] !== null) heads.push({ run, row: { [first]: row[first] ?? null }, isRead: false });
    }
    yield;
  }
  const inOrder = headOrder(order, descending);
  heads.sort((one, other) => inOrder(other, one)); // the next one is at the end
  for (let { after } = found; ; ) {
    const head = heads.pop();
    if (head === undefined) return;
    const { run, row, isRead } = head;
    if (isRead) {
      rows.push(row);
      if (rows.length === limit) return;
      after = order.map((column) => row[column] ?? null);
    }
    const ofRun = {
      ...found,
      after,
      equals: equals.map(([column], n) => [column, run.slice(n, n + 1)] as const),
    };
    const [next] = all(selectOf(table, [ofRun], { columns, limit: 1 }));
    if (next !== undefined) insert(heads, { run, row: next, isRead: true }, inOrder);
    yield;
  }
}

/** Splits the longest list of values, so that no part has many runs. */
function partsOf(found: Selected): Selected[] {
  const { equals } = found;
  const byLength = [...equals.entries()].toSorted(([, [, one]], [, [, other]]) => other.length - one.length);
  const [longest, [column, values]] = byLength[0] ?? [0, ['', []]];
  const others = equals.reduce((product, [, each]) => product * each.length, 1) / values.length;
  const size = Math.max(1, Math.floor(STARTS_AT_ONCE / others));
  return Array.from({ length: Math.ceil(values.length / size) }, (_, n) => ({
    ...found,
    equals: equals.with(longest, [column, values.slice(n * size, (n + 1) * size)]),
  }));
}

type HeadOrder = (one: Head, other: Head) => number;

/** A head that is not read yet comes before others with the same value, since its row may. */
function headOrder(order: readonly string[], descending: boolean): HeadOrder {
  const byFirst = comparing(order.slice(0, 1), descending);
  const byRow = comparing(order, descending);
  return (one, other) =>
    byFirst(one.row, other.row) ||
    Number(one.isRead) - Number(other.isRead) ||
    (one.isRead ? byRow(one.row, other.row) : 0);
}

/** Inserts a head into a list that has the next one at its end. */
function insert(heads: Head[], head: Head, inOrder: HeadOrder): void {
  let [low, high] = [0, heads.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const other = heads[middle];
    if (other !== undefined && inOrder(other, head) > 0) low = middle + 1;
    else high = middle;
  }
  heads.splice(low, 0, head);
}
