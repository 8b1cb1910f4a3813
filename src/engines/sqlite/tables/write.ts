import type { StatementSync } from 'node:sqlite';
import { type AnyRow, plainColumns, type TablePlan, type Value } from '../../../tables/plan.ts';
import type { Write } from '../../../tables/tables.ts';
import { quoted } from '../../tables/sql.ts';
import { asideOf, marks, rowColumn } from './sql.ts';

type Prepare = (sql: string) => StatementSync;

/** The statement for writes that differ only in their values. */
interface Form {
  readonly sql: string;
  /** The columns that the statement writes. */
  readonly own: readonly string[];
  /** The columns that are written to tables of their own. */
  readonly beside: readonly string[];
}

/** The forms of each table. They are made once, since making the text costs more than the write. */
const forms = new WeakMap<TablePlan, Map<string, Form>>();

function formOf(table: TablePlan, name: string, make: () => Form): Form {
  const known = forms.get(table) ?? new Map<string, Form>();
  forms.set(table, known);
  const form = known.get(name) ?? make();
  known.set(name, form);
  return form;
}

/** Does a write within a transaction. Returns false if its guard does not hold. */
export function isWritten(prepare: Prepare, write: Write): boolean {
  if (write.kind === 'drop') return isDropped(prepare, write);
  const { table, key, row, as } = write;
  const isInsert = write.kind === 'put' && as === undefined;
  const form = isInsert ? insertOf(write) : updateOf(table, Object.keys(row), as);
  const below = isInsert && write.below !== undefined ? [write.below[1]] : [];
  const values = [...valuesOf(row, form.own), ...(isInsert ? below : [key, ...Object.values(as ?? {})])];
  const { beside } = form;
  if (beside.length === 0) return prepare(form.sql).run(...values).changes === 1;
  const stored = prepare(form.sql).get(...values);
  if (stored === undefined) return false;
  for (const column of beside)
    putAside(prepare, table, { at: stored.at as number, column, value: row[column] });
  return true;
}

function putAside(
  prepare: Prepare,
  table: TablePlan,
  { at, column, value }: { readonly at: number; readonly column: string; readonly value: Value | undefined },
): void {
  const [name, own] = [asideOf(table, column), rowColumn(table)];
  if (value === null || value === undefined) prepare(`DELETE FROM ${name} WHERE "${own}" = ?`).run(at);
  else prepare(`INSERT OR REPLACE INTO ${name} ("${own}", "${column}") VALUES (?, ?)`).run(at, value);
}

function isDropped(prepare: Prepare, { table, key, as = {} }: Write): boolean {
  const is = `FROM "${table.name}" WHERE "${table.key}" = ?`;
  const guard = Object.keys(as).map((column) => ` AND "${column}" IS ?`);
  const dropped = prepare(`DELETE ${is}${guard.join('')}`).run(key, ...Object.values(as));
  return dropped.changes === 1 || guard.length === 0 || prepare(`SELECT 1 ${is}`).get(key) === undefined;
}

function insertOf({ table, missing, below }: Extract<Write, { readonly kind: 'put' }>): Form {
  const { name, key, aside: beside = [] } = table;
  const conflict = missing ? 'missing' : (below?.[0] ?? 'put');
  return formOf(table, conflict, () => {
    const own = plainColumns(table);
    const limit = below === undefined ? '' : ` WHERE "${name}"."${below[0]}" < ?`;
    const replaced = `UPDATE SET ${own.map((column) => `"${column}" = excluded."${column}"`).join(', ')}${limit}`;
    return {
      own,
      sql: `INSERT INTO "${name}" (${quoted(own)}) VALUES (${marks(own)})
        ON CONFLICT ("${key}") DO ${missing ? 'NOTHING' : replaced}${returning(table, beside)}`,
      beside,
    };
  });
}

function updateOf(table: TablePlan, columns: readonly string[], as: AnyRow = {}): Form {
  const { name, key, aside = [] } = table;
  const guarded = Object.keys(as);
  return formOf(table, `${columns} as ${guarded}`, () => {
    const beside = columns.filter((column) => aside.includes(column));
    const own = columns.filter((column) => !aside.includes(column));
    const set = own.length === 0 ? `"${key}" = "${key}"` : setOf(own);
    const guard = guarded.map((column) => ` AND "${column}" IS ?`).join(''); // IS also finds what was read as null
    return {
      own,
      sql: `UPDATE "${name}" SET ${set} WHERE "${key}" = ?${guard}${returning(table, beside)}`,
      beside,
    };
  });
}

function returning(table: TablePlan, beside: readonly string[]): string {
  return beside.length === 0 ? '' : ` RETURNING "${rowColumn(table)}" AS at`;
}

function setOf(columns: readonly string[]): string {
  return columns.map((column) => `"${column}" = ?`).join(', ');
}

function valuesOf(row: AnyRow, columns: readonly string[]): Value[] {
  return columns.map((column) => row[column] ?? null);
}
