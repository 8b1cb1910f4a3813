import pg from 'pg';
import { type Kind, kindOf, type TablePlan, type Value } from '../../../tables/plan.ts';

pg.defaults.parseInputDatesAsUTC = true;

/** The types of columns. */
export const TYPES: Readonly<Record<Kind, string>> = {
  text: 'text',
  integer: 'bigint',
  number: 'double precision',
  time: 'timestamptz',
  bytes: 'bytea',
};

/** PostgreSQL can't store U+0000. It is stored as two U+0001, and U+0001 as U+0001 U+0002, which keeps the order. */
const NUL = '\u0001\u0001';
const MARK = '\u0001\u0002';

/** The values for infinite limits of a selection. */
const ENDLESS: Readonly<Partial<Record<Kind, readonly [least: string, greatest: string]>>> = {
  time: ['-infinity', 'infinity'],
  integer: [`${-(2n ** 63n)}`, `${2n ** 63n - 1n}`],
};

/** Times are sent in the form of ISO 8601, which the server reads alike whatever its settings are. */
export function toStored(kind: Kind, value: Value): unknown {
  if (typeof value === 'string') return value.replaceAll('\u0001', MARK).replaceAll('\0', NUL);
  if (typeof value !== 'number') return value;
  if (!Number.isFinite(value)) return ENDLESS[kind]?.[value < 0 ? 0 : 1] ?? value;
  return kind === 'time' ? new Date(value) : value;
}

/**
 * Returns the list that selects columns, in a form that depends on no setting: `DateStyle` and the like, of which every
 * role, database and pooler may have another, say how the server writes times. So it sends them as whole milliseconds.
 */
export function readable(table: TablePlan, columns: readonly string[]): string {
  return columns
    .map((column) =>
      kindOf(table, column) === 'time' ? `${inMs(`"${column}"`)} AS "${column}"` : `"${column}"`,
    )
    .join(', ');
}

/** Returns the milliseconds of a time since 1970. */
export function inMs(time: string): string {
  return `(extract(epoch FROM ${time}) * 1000)::bigint`;
}

const { INT8, TEXT } = pg.types.builtins;
const READERS: Readonly<Record<number, (text: string) => unknown>> = {
  [INT8]: Number,
  [TEXT]: (text) => text.replaceAll(NUL, '\0').replaceAll(MARK, '\u0001'),
};

/** How the driver parses the values that the server sends as text. It knows both forms of `bytea`. */
export const types: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    READERS[oid] ?? pg.types.getTypeParser(oid, format as 'text'),
};
