import { setImmediate as nextTurn } from 'node:timers/promises';
import { FuelError } from '../../base/errors.ts';
import { isRecordingType, transactionStream } from '../../domain/transaction-events.ts';
import { sameJson } from '../../domain/values/same-json.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { readInParts } from '../../event-store/reads.ts';
import type { Position } from '../../event-store/recorded-event.ts';
import { DELIVERIES, LANES, LOG, type StoredRow, WITHDRAWALS } from '../../push/log/tables.ts';
import type { AnyRow, Key, TablePlan } from '../../tables/plan.ts';
import { put, type Tables } from '../../tables/tables.ts';

/** Of a delivery whose transaction was erased: before everything; it is never attempted again. */
const NOWHERE: Position = 0;
/** Rows of one read: with their records, and what receivers said, some MiB. */
const BLOCK = 100;

export interface DeliveryCopyOptions {
  readonly source: Tables;
  /** Has the source's name. */
  readonly target: Tables;
  /** Where the copied events are: deliveries get their positions there. */
  readonly targetStore: Pick<EventStore, 'readStreams'>;
  readonly onProgress: (step: 'deliveries copied', done: number) => void;
}

export interface DeliveryCopy {
  /** Deliveries that are the same in the target as in the source. */
  readonly deliveries: number;
  /** What differs, one line each. */
  readonly faults: readonly string[];
}

/** Gives the target the source's name. Throws `REFUSED` where it has another one, and deliveries. */
export async function nameLog({
  source,
  target,
}: Pick<DeliveryCopyOptions, 'source' | 'target'>): Promise<void> {
  const [[name], [own]] = [await rowsAfter(source, LOG), await rowsAfter(target, LOG)];
  if (name === undefined || sameJson(name, own)) return;
  if ((await rowsAfter(target, DELIVERIES)).length > 0)
    throw new FuelError(
      'REFUSED',
      `the delivery log ${own?.id} holds deliveries: it can't become the log ${name.id}, use an empty one`,
    );
  await target.write([put<TablePlan>(LOG, name)]);
}

/**
 * Copies the delivery log row by row and reads it back. What the target has already is not stored again, so that a copy
 * that was interrupted continues quickly. Nothing is delivered from either meanwhile: a claim is copied as ended.
 */
export async function copyDeliveries(options: DeliveryCopyOptions): Promise<DeliveryCopy> {
  const { targetStore, onProgress } = options;
  const lanes = await copyTable(options, LANES, {
    nameOf: ({ prefix }) => `the failure streak of key ${prefix}`,
  });
  const withdrawals = await copyTable(options, WITHDRAWALS, {
    nameOf: ({ transaction_id }) => `the withdrawal of transaction ${transaction_id}`,
  });
  const deliveries = await copyTable(options, DELIVERIES, {
    nameOf: ({ id }) => `delivery ${id}`,
    convert: (rows) => relocated(rows as unknown as readonly StoredRow[], targetStore),
    onCopied: (equal) => onProgress('deliveries copied', equal),
  });
  return {
    deliveries: deliveries.equal,
    faults: [...deliveries.faults, ...withdrawals.faults, ...lanes.faults],
  };
}

interface TableCopy {
  readonly nameOf: (row: AnyRow) => string;
  /** The rows as the target is to have them. */
  readonly convert?: (rows: readonly AnyRow[]) => Promise<readonly AnyRow[]>;
  readonly onCopied?: (equal: number) => void;
}

async function copyTable(
  { source, target }: DeliveryCopyOptions,
  table: TablePlan,
  { nameOf, convert = async (rows) => rows, onCopied }: TableCopy,
): Promise<{ readonly equal: number; readonly faults: readonly string[] }> {
  const faults: string[] = [];
  const keyOf = (row: AnyRow): Key => row[table.key] as Key;
  let equal = 0;
  let after: Key | undefined;
  for (let isEnd = false; !isEnd; ) {
    const rows = await rowsAfter(source, table, { after });
    isEnd = rows.length < BLOCK;
    const wanted = await convert(rows);
    const range = { after, to: isEnd ? undefined : keyOf(rows.at(-1) as AnyRow) };
    let found = await rowsBetween(target, table, range);
    const differing = wanted.filter((row) => !sameJson(row, found.get(keyOf(row))));
    if (differing.length > 0) {
      await target.write(differing.map((row) => put(table, row as never)));
      found = await rowsBetween(target, table, range);
    }
    for (const row of wanted) {
      const copy = found.get(keyOf(row));
      found.delete(keyOf(row));
      if (sameJson(row, copy)) equal++;
      else faults.push(`${nameOf(row)} ${copy === undefined ? 'is not in the target' : 'differs'}`);
    }
    for (const row of found.values()) faults.push(`${nameOf(row)} is in the target only`);
    after = range.to;
    onCopied?.(equal);
    await nextTurn();
  }
  return { equal, faults };
}

/** Each at the position that its transaction's event has in `store`, and without its claim. */
export async function relocated(
  rows: readonly StoredRow[],
  store: DeliveryCopyOptions['targetStore'],
): Promise<readonly StoredRow[]> {
  const ids = [...new Set(rows.map(({ transaction_id }) => transaction_id))];
  const positions = new Map<string, Position | undefined>();
  for await (const [stream, events] of readInParts(store, ids.map(transactionStream))) {
    positions.set(stream, events.find(({ type }) => isRecordingType(type))?.position);
  }
  return rows.map((row) => ({
    ...{ ...row, lease: null, claimed: 0 },
    position: positions.get(transactionStream(row.transaction_id)) ?? NOWHERE,
  }));
}

/** The rows of the keys in the range; without `to` all that are left. */
async function rowsBetween(
  tables: Tables,
  table: TablePlan,
  { after, to }: { readonly after: Key | undefined; readonly to: Key | undefined },
): Promise<Map<Key, AnyRow>> {
  const found = new Map<Key, AnyRow>();
  for (let last = after; ; ) {
    const rows = await rowsAfter(tables, table, { after: last, to });
    for (const row of rows) found.set(row[table.key] as Key, row);
    last = rows.at(-1)?.[table.key] as Key | undefined;
    if (rows.length < BLOCK) return found;
  }
}

function rowsAfter(
  tables: Tables,
  table: TablePlan,
  { after, to }: { readonly after?: Key | undefined; readonly to?: Key | undefined } = {},
): Promise<AnyRow[]> {
  const columns = Object.keys(table.columns);
  const place = after === undefined ? undefined : { [table.key]: after };
  return tables.find(table, { index: 'key', range: { to }, after: place, limit: BLOCK, columns });
}
