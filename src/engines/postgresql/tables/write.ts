import { kindOf, type TablePlan, type Value } from '../../../tables/plan.ts';
import type { Write } from '../../../tables/tables.ts';
import type { Run } from '../driver/connection.ts';
import { TYPES, toStored } from '../driver/values.ts';
import { quoted, tableIn } from './sql.ts';

/**
 * Does the writes in one statement, in which each form of write is a part, and says which were done. Forms and rows are in
 * the same order in every list, so that lists that are written at once mostly wait for each other and don't deadlock.
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
  const there = await keysThere(run, schema, left);
  return writes.map((write) => isDone(write) || (write.kind === 'drop' && !there.has(write)));
}

/** Writes of one form are alike but for their values. */
function formOf(write: Write): string {
  const { kind, table, as = {} } = write;
  const columns = kind === 'drop' ? [] : Object.keys(write.row);
  const guard = kind === 'put' && (write.missing ? 'missing' : write.below?.join(' below '));
  return [table.name, kind, columns, Object.keys(as), guard].join(' / ');
}

/** One form's part of the statement, which returns the keys of the rows that it has written. */
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

/** Those whose row is there. */
async function keysThere(run: Run, schema: string, writes: readonly Write[]): Promise<Set<Write>> {
  const there = new Set<Write>();
  for (const [table, some] of Map.groupBy(writes, (write) => write.table)) {
    for (const write of await thereIn(run, schema, table, some)) there.add(write);
  }
  return there;
}

async function thereIn(
  run: Run,
  schema: string,
  table: TablePlan,
  writes: readonly Write[],
): Promise<Write[]> {
  const type = kindOf(table, table.key);
  const values = [writes.map(({ key }) => toStored(type, key))];
  const sql = `SELECT "${table.key}" AS key FROM ${tableIn(schema, table)} WHERE "${table.key}" = ANY($1::${TYPES[type]}[])`;
  const found = new Set((await run({ sql, values })).map(({ key }) => key));
  return writes.filter(({ key }) => found.has(key));
}
