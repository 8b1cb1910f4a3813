import {
  NO_ACCOUNT,
  type Reference,
  type RowState,
  referencesBy,
  referencesSince,
  type TransactionRow,
} from '../../../projections/transactions.ts';
import { VISIBLE_STATUSES, type VisibleStatus } from '../../domain/transaction-events.ts';
import { type RowOf, type StorePlan, type TablePlan, tablePlan } from '../../tables/plan.ts';

/** The limit for a call, except for those of a page. */
const PATIENT_MS = 30_000;

/**
 * The one row that says which generations there are. `served` and `built` are each a `Made` as JSON; `leaving` is a JSON
 * array of a `Left` for each that is still to be removed.
 */
export const VIEWS = tablePlan({
  name: 'transactions_views',
  key: 'name',
  columns: { name: 'text', last: 'integer', served: 'text?', built: 'text?', leaving: 'text' },
  indexes: {},
});

export const VIEWS_STORE = storeOf('transactions', [VIEWS], 'full');

/**
 * A row of each transaction. A tombstone has neither status nor record, and is in no index but that of the keys. Each index
 * fits one combination of the references that a page is asked for by: equal values first, then the order of the list.
 */
function rowsOf(generation: number, references: readonly Reference[]) {
  const columns = Object.fromEntries(references.map((name) => [name, 'integer?']));
  const asked = subsetsOf(references);
  return tablePlan({
    name: `transactions_${generation}`,
    key: 'id',
    columns: {
      id: 'integer',
      account_id: 'integer',
      revision: 'integer',
      status: 'text?',
      created_at: 'time?',
      ...(columns as Record<Reference, 'integer?'>),
      record: 'text?',
    },
    indexes: Object.fromEntries(
      asked.map((names) => [indexOf(names), ['account_id', ...names, 'status', 'created_at'] as const]),
    ),
    indexesLater: true,
    shardedBy: 'account_id',
  });
}

/** The name of the index for a page that is asked for by these references. */
export function indexOf(references: readonly Reference[]): string {
  const names = references.map((name) => name.replace('_id', ''));
  return `by_${names.length === 0 ? 'account' : names.join('_and_')}`;
}

function subsetsOf(references: readonly Reference[]): Reference[][] {
  let subsets: Reference[][] = [[]];
  for (const name of references) subsets = [...subsets, ...subsets.map((names) => [...names, name])];
  return subsets;
}

function parkedOf(generation: number) {
  return tablePlan({
    name: `transactions_parked_${generation}`,
    key: 'position',
    columns: {
      position: 'integer',
      stream: 'text',
      revision: 'integer',
      type: 'text',
      reason: 'text',
      parked_at: 'time',
    },
    indexes: { by_stream: ['stream'] },
  });
}

/** A table of one row: the place that the generation has reached. */
function progressOf(generation: number) {
  return tablePlan({
    name: `transactions_progress_${generation}`,
    key: 'name',
    columns: {
      name: 'text',
      position: 'integer',
      anchor: 'text?',
      since_at: 'time',
      since_position: 'integer',
      since_events: 'integer',
    },
    indexes: {},
  });
}

export type RowsTable = ReturnType<typeof rowsOf>;
export type ParkedTable = ReturnType<typeof parkedOf>;
export type ProgressTable = ReturnType<typeof progressOf>;
export type Row = RowOf<RowsTable>;

/** The tables of one generation. A view of an older rendering lacks the references that came later. */
export interface GenerationTables {
  readonly rows: RowsTable;
  readonly references: readonly Reference[];
  readonly parked: ParkedTable;
  readonly progress: ProgressTable;
}

export function generationTables(generation: number, rendering: number): GenerationTables {
  const references = referencesSince(rendering);
  return {
    rows: rowsOf(generation, references),
    references,
    parked: parkedOf(generation),
    progress: progressOf(generation),
  };
}

export function generationStore(generation: number, { rows, parked, progress }: GenerationTables): StorePlan {
  // A power cut may take the last batches, and their checkpoint with them.
  return storeOf(`transactions-${generation}`, [rows, parked, progress], 'normal');
}

function storeOf(name: string, tables: readonly TablePlan[], durability: StorePlan['durability']): StorePlan {
  return { name, version: 1, tables, durability, withinMs: PATIENT_MS, cacheMiB: 8 };
}

/**
 * The row of a transaction in a view with these references. `account`: of the row that it takes the place of, which an
 * erased one keeps: it may say where a cluster has the row.
 */
export function storedRow(
  references: readonly Reference[],
  id: number,
  { accountId, revision, shown }: RowState,
  account = NO_ACCOUNT,
): Row {
  return {
    id,
    account_id: accountId === NO_ACCOUNT ? account : accountId,
    revision,
    status: shown?.status ?? null,
    created_at: shown?.createdAtMs ?? null,
    ...referencesBy((name) => shown?.references[name] ?? null, references),
    record: shown?.record ?? null,
  };
}

export function stateIn(row: Row): RowState {
  return { revision: row.revision, accountId: row.account_id, shown: shownIn(row) };
}

/** Throws for a status that this version does not know, such as one of a later version. */
function shownIn(row: Row): TransactionRow | null {
  const { id, account_id: accountId, status, created_at: createdAtMs, record } = row;
  if (status === null || createdAtMs === null || record === null) return null;
  if (!isVisibleStatus(status))
    throw new Error(`the row of transaction ${id} has an unknown status: ${status}`);
  const references = referencesBy((name) => row[name] ?? null); // an older view lacks some
  return { id, accountId, status, createdAtMs, references, record };
}

function isVisibleStatus(status: string): status is VisibleStatus {
  return (VISIBLE_STATUSES as readonly string[]).includes(status);
}
