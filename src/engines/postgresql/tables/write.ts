import { kindOf, type Value } from '../../../tables/plan.ts';
import type { Write } from '../../../tables/tables.ts';
import { quoted } from '../../tables/sql.ts';
import type { Run } from '../driver/session.ts';
import { TYPES, toStored } from '../driver/values.ts';
import { Reading, tableIn } from './sql.ts';

/**
 * Does the writes in one statement, in which each form of write is a part, and says which were done. Forms and rows have
 * the same order in every statement, so that statements that run at the same time usually wait for each other instead of
 * deadlocking.
 */
export async function writeAtOnce(run: Run, schema: string, writes: readonly Write[]): Promise<boolean[]> {
  const forms = Map.groupBy(writes, formOf);
  const values: unknown[] = [];
  const parts = [...forms.keys()].sort().map((form) => {
    const some = (forms.get(form) ?? []).toSorted((a, b) => (a.key < b.key ? -1 : 1));
    return partOf(schema, some, values);
  });
  const withs = parts.map((part, n) => `w${n} AS (${part.sql})`);
  const keys = parts.map(
    ({ table }, n) => `SELECT '${table.name}' AS name, "${table.key}"::text AS key FROM w${n}`,
  );
  const rows = await run({ sql: `WITH ${withs.join(', ')} ${keys.join(' UNION ALL ')}`, values });
  const done = new Set(rows.map(({ name, key }) => `${name} ${key}`));
  const isDone = ({ table, key }: Write): boolean => done.has(`${table.name} ${key}`);
  const left = writes.filter((write) => write.kind === 'drop' && write.as !== undefined && !isDone(write));
  const existing = await existingOf(run, schema, left);
  return writes.map((write) => isDone(write) || (write.kind === 'drop' && !existing.has(write)));
}

/** Returns a text that is the same for writes which differ only in their values. */
function formOf(write: Write): string {
  const { kind, table, as = {} } = write;
  const columns = kind === 'drop' ? [] : Object.keys(write.row);
  const guard = kind === 'put' && (write.missing ? 'missing' : write.below?.join(' below '));
  return [table.name, kind, columns, Object.keys(as), guard].join(' / ');
}

/** Returns the part of the statement for writes of one form. It returns the keys of the rows that it has written. */
function partOf(schema: string, writes: readonly Write[], values: unknown[]) {
  const [write] = writes as [Write];
  const { table, kind, as = {} } = write;
  const into = tableIn(schema, table);
  const { key } = table;
  const list = (column: string, each: (write: Write) => Value | undefined): string => {
    const type = kindOf(table, column);
    return `$${values.push(writes.map((one) => toStored(type, each(one) ?? null)))}::${TYPES[type]}[]`;
  };
  const columns = kind === 'drop' ? [] : Object.keys(write.row).filter((column) => column !== key);
  const guarded = Object.keys(as);
  const lists = [
    list(key, (each) => each.key),
    ...columns.map((column) => list(column, (each) => (each.kind === 'drop' ? null : each.row[column]))),
    ...guarded.map((column) => list(column, (each) => each.as?.[column])),
  ];
  const names = [key, ...columns, ...guarded.map((column) => `as ${column}`)];
  const given = `unnest(${lists.join(', ')}) AS given (${quoted(names)})`;
  const returning = `RETURNING now."${key}"`;
  const set = (from: string): string =>
    [key, ...columns].map((column) => `"${column}" = ${from}."${column}"`).join(', ');
  if (kind === 'put' && write.as === undefined) {
    const limit =
      write.below &&
      `now."${write.below[0]}" < $${values.push(toStored(kindOf(table, write.below[0]), write.below[1]))}`;
    const replace = `UPDATE SET ${set('excluded')}${limit ? ` WHERE ${limit}` : ''}`;
    const sql = `INSERT INTO ${into} AS now (${quoted(names)}) SELECT * FROM ${given}
      ON CONFLICT ("${key}") DO ${write.missing ? 'NOTHING' : replace} ${returning}`;
    return { table, sql };
  }
  const is = guarded.map((column) => ` AND now."${column}" IS NOT DISTINCT FROM given."as ${column}"`);
  const where = `WHERE now."${key}" = given."${key}"${is.join('')} ${returning}`;
  const change = `UPDATE ${into} AS now SET ${set('given')} FROM ${given} ${where}`;
  return { table, sql: kind === 'drop' ? `DELETE FROM ${into} AS now USING ${given} ${where}` : change };
}

/** Returns the writes whose row exists. */
async function existingOf(run: Run, schema: string, writes: readonly Write[]): Promise<Set<Write>> {
  const existing = new Set<Write>();
  for (const [table, some] of Map.groupBy(writes, (write) => write.table)) {
    const keys = some.map((write) => write.key);
    const rows = await run(new Reading(schema, table).byKey(keys, [table.key]));
    const found = new Set(rows.map((row) => row[table.key]));
    for (const write of some) if (found.has(write.key)) existing.add(write);
  }
  return existing;
}
