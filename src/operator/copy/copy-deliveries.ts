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

/** The position of a delivery whose transaction was erased. It comes before everything, since it is never attempted again. */
const NOWHERE: Position = 0;
/** The number of rows per read. With records and answers they take a few MiB. */
const BLOCK = 100;

export interface DeliveryCopyOptions {
  readonly source: Tables;
  /** It has the source's name. */
  readonly target: Tables;
  /** The store with the copied events, which gives the deliveries their new positions. */
  readonly targetStore: Pick<EventStore, 'readStreams'>;
  readonly onProgress: (step: 'deliveries copied', done: number) => void;
}

export interface DeliveryCopy {
  /** The number of deliveries that are the same in both logs. */
  readonly deliveries: number;
  /** The differences, one line each. */
  readonly faults: readonly string[];
}

/** Gives the target the source's name. Throws `REFUSED` if it has another name and deliveries. */
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
 * Copies the delivery log page by page, and reads each page back. Nothing is delivered from either log meanwhile, so claims
 * are copied as ended.
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
  /** Returns the rows as the target should have them. */
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
    await target.write(wanted.map((row) => put(table, row as never)));
    const to = isEnd ? undefined : keyOf(rows.at(-1) as AnyRow);
    const found = await rowsBetween(target, table, { after, to });
    for (const row of wanted) {
      const copy = found.get(keyOf(row));
      found.delete(keyOf(row));
      if (sameJson(row, copy)) equal++;
      else faults.push(`${nameOf(row)} ${copy === undefined ? 'is not in the target' : 'differs'}`);
    }
    for (const row of found.values()) faults.push(`${nameOf(row)} is in the target only`);
    after = to;
    onCopied?.(equal);
    await nextTurn();
  }
  return { equal, faults };
}

/** The rows with the positions that their transactions' events have in `store`, and without claims. */
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

/** The rows whose keys are in the range, or without `to` all remaining rows. */
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
