import {
  columnsOfIndex,
  isNullable,
  type Key,
  kindOf,
  type TablePlan,
  type Value,
} from '../../../tables/plan.ts';
import { groupOf, type Selected } from '../../../tables/selected.ts';
import type { Wanted } from '../../tables/as-tables.ts';
import { haveValues, inOrder, quoted, whereAll } from '../../tables/sql.ts';
import type { Sql } from '../driver/session.ts';
import { readable, TYPES, toStored } from '../driver/values.ts';

/** Returns the name of a table, with its schema. */
export function tableIn(schema: string, { name }: Pick<TablePlan, 'name'>): string {
  return `"${schema}"."${name}"`;
}

/**
 * Texts have the order of their bytes, as in the embedded engine. Columns that are kept aside are plain columns, since
 * PostgreSQL stores large values outside of a row by itself.
 */
export function createTable(schema: string, table: TablePlan): string {
  const columns = Object.keys(table.columns).map((column) => {
    const kind = kindOf(table, column);
    const order = kind === 'text' ? ' COLLATE "C"' : '';
    return `"${column}" ${TYPES[kind]}${order}${isNullable(table, column) ? '' : ' NOT NULL'}`;
  });
  const key = `CONSTRAINT "${table.name} key" PRIMARY KEY ("${table.key}")`;
  return `CREATE TABLE IF NOT EXISTS ${tableIn(schema, table)} (${[...columns, key].join(', ')})`;
}

/** Makes one statement that reads a table, with its values in the order of its parameters. */
export class Reading {
  readonly values: unknown[] = [];
  readonly #table: TablePlan;
  readonly #from: string;

  constructor(schema: string, table: TablePlan) {
    this.#table = table;
    this.#from = tableIn(schema, table);
  }

  /** Reads the first rows of one run, in its order. */
  run(found: Selected, { columns, limit }: Wanted): Sql {
    const terms = found.equals.map(([column, [value = null]]) => this.#value(column, value));
    const rows = this.#rows(found, { columns: quoted(columns), terms, limit });
    return this.#sql(`SELECT ${this.#readable(columns)} FROM (${rows}) AS found`);
  }

  byKey(keys: readonly Value[], columns: readonly string[]): Sql {
    const { key } = this.#table;
    const isAsked = `"${key}" = ANY(${this.#list(key, keys)})`;
    return this.#sql(`SELECT ${this.#readable(columns)} FROM ${this.#from} WHERE ${isAsked}`);
  }

  /**
   * Merges runs. It finds where each begins, reads keys of those that begin first, since no other can reach the rows that
   * are asked for, and at last reads these rows. All of it is one statement, so the rows are those of one moment.
   */
  runs(found: Selected, { columns, limit }: Wanted): Sql {
    const index = quoted(columnsOfIndex(this.#table, found.index));
    const first = `ORDER BY ${inOrder(found.order, found)} LIMIT ${limit}`;
    const terms = found.equals.map(([column]) => `begun."${column}"`);
    const keys = this.#rows(found, { columns: index, terms, limit });
    const key = `"${this.#table.key}"`;
    return this.#sql(`WITH begun AS MATERIALIZED (SELECT ${index} ${this.#ofRuns(found, index, 1)} ${first}),
      keys AS (SELECT each.* FROM begun CROSS JOIN LATERAL (${keys}) AS each)
      SELECT ${this.#readable(columns)} FROM (SELECT * FROM ${this.#from}
      WHERE ${key} = ANY(ARRAY(SELECT ${key} FROM keys ${first})) LIMIT ${limit}) AS found ${first}`);
  }

  count(found: Selected, max: number): Sql {
    return this.#sql(
      `SELECT count(*) AS n FROM (SELECT 1 ${this.#ofRuns(found, '1', max)} LIMIT ${max}) AS counted`,
    );
  }

  /** Reads the first row of each group. After each group it enters the index again at the next one. */
  groups(found: Selected): Sql {
    const columns = columnsOfIndex(this.#table, found.index);
    const [of = ''] = found.order;
    const terms = found.equals.map(([column, [value = null]]) => this.#value(column, value));
    const first = (part: Selected, ofLast: readonly string[] = []): string =>
      this.#rows(part, { columns: quoted(columns), terms, limit: 1, after: ofLast });
    return this.#sql(`WITH RECURSIVE firsts AS ((${first(found)}) UNION ALL
      SELECT next.* FROM firsts AS last CROSS JOIN LATERAL (${first(found, [`last."${of}"`])}) AS next)
      SELECT ${this.#readable(columns)} FROM firsts`);
  }

  /** Reads the first row of each of these groups. */
  groupsOf(found: Selected, groups: readonly Key[]): Sql {
    const [of = ''] = found.order;
    const part = groupOf(found, null);
    const equals = [...found.equals, [of, groups] as const];
    const columns = columnsOfIndex(this.#table, found.index);
    const rows = this.#ofRuns({ ...part, equals }, quoted(columns), 1);
    return this.#sql(`SELECT ${this.#readable(columns)} ${rows}`);
  }

  /** Returns the `FROM` with up to `limit` rows of each run. */
  #ofRuns(found: Selected, columns: string, limit: number): string {
    const lists = found.equals.map(
      ([column, list], n) => `unnest(${this.#list(column, list)}) AS run${n}(value)`,
    );
    const terms = found.equals.map((_, n) => `run${n}.value`);
    const rows = this.#rows(found, { columns, terms, limit });
    return `FROM ${lists.map((each) => `${each} CROSS JOIN `).join('')}LATERAL (${rows}) AS found`;
  }

  /**
   * Reads the rows of a run between two places of its index. It compares whole rows in the order of all the columns of
   * the index, so that no other index fits. If it left the columns with equal values out of the order, PostgreSQL might
   * choose an index on the other columns. A comparison of rows stops a scan only where the first column changes, so a
   * short run would be followed by the rest of the account: the scan ends by its limit, and other runs are filtered out.
   */
  #rows(
    found: Selected,
    part: {
      readonly columns: string;
      readonly terms: readonly string[];
      readonly limit: number;
      readonly after?: readonly string[];
    },
  ): string {
    const { equals, order, from, to, descending, present } = found;
    const lead = equals.map(([column]) => column);
    const [first = ''] = order;
    const place = found.after?.map((value, n) => this.#value(order[n] ?? '', value)) ?? part.after ?? [];
    const [begin, end] = descending ? (['<', '>'] as const) : (['>', '<'] as const);
    const valuesOf = (limit: Value | undefined) => (limit === undefined ? [] : [this.#value(first, limit)]);
    const limits = { '>': valuesOf(from), '<': valuesOf(to) };
    const upTo = (operator: '<' | '>', count?: number): string[] => {
      const values = limits[operator];
      const columns = [...lead, ...values.map(() => first)];
      return compared(`${operator}=`, columns.slice(0, count), [...part.terms, ...values].slice(0, count));
    };
    const beyond = [
      ...compared(begin, [...lead, ...order.slice(0, place.length)], [...part.terms, ...place]),
      // Reading begins at the place, so the limit on that side only filters.
      ...limits[begin].map((value) => `("${first}" ${begin}= ${value}) IS TRUE`),
    ];
    const begins = place.length > 0 ? beyond : upTo(begin);
    const where = whereAll([...begins, ...upTo(end, 1), ...haveValues(present)]);
    return `SELECT ${part.columns} FROM (SELECT * FROM ${this.#from}${where}
      ORDER BY ${inOrder([...lead, ...order], found)} LIMIT ${part.limit}) AS scanned${whereAll(upTo(end))}`;
  }

  #readable(columns: readonly string[]): string {
    return readable(this.#table, columns);
  }

  #value(column: string, value: Value): string {
    const kind = kindOf(this.#table, column);
    return `$${this.values.push(toStored(kind, value))}::${TYPES[kind]}`;
  }

  #list(column: string, list: readonly Value[]): string {
    const kind = kindOf(this.#table, column);
    return `$${this.values.push(list.map((value) => toStored(kind, value)))}::${TYPES[kind]}[]`;
  }

  #sql(sql: string): Sql {
    return { sql, values: this.values };
  }
}

function compared(operator: string, columns: readonly string[], terms: readonly string[]): string[] {
  return columns.length === 0 ? [] : [`(${quoted(columns)}) ${operator} (${terms.join(', ')})`];
}
