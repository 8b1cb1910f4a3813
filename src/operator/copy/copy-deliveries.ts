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
      `the target's delivery log ${own?.id} already holds deliveries. Copy into an empty one`,
    );
  await target.write([put<TablePlan>(LOG, name)]);
}

/**
 * Copies the delivery log page by page, and returns the number of deliveries. Nothing is delivered from either log meanwhile, so
 * claims are copied as ended.
 */
export async function copyDeliveries({
  source,
  target,
  targetStore,
  onProgress,
}: DeliveryCopyOptions): Promise<number> {
  let deliveries = 0;
  for (const table of [LANES, WITHDRAWALS])
    for await (const rows of pagesOf(source, table))
      await target.write(rows.map((row) => put(table, row as never)));
  for await (const rows of pagesOf(source, DELIVERIES)) {
    const moved = await relocated(rows as unknown as readonly StoredRow[], targetStore);
    await target.write(moved.map((row) => put(DELIVERIES, row as never)));
    deliveries += rows.length;
    onProgress('deliveries copied', deliveries);
    await nextTurn();
  }
  return deliveries;
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
    ...row,
    lease: null,
    claimed: 0,
    position: positions.get(transactionStream(row.transaction_id)) ?? NOWHERE,
  }));
}

async function* pagesOf(tables: Tables, table: TablePlan): AsyncGenerator<AnyRow[], void> {
  let after: Key | undefined;
  do {
    const rows = await rowsAfter(tables, table, after);
    if (rows.length > 0) yield rows;
    after = rows.length < BLOCK ? undefined : (rows.at(-1)?.[table.key] as Key);
  } while (after !== undefined);
}

function rowsAfter(tables: Tables, table: TablePlan, after?: Key): Promise<AnyRow[]> {
  const columns = Object.keys(table.columns);
  const place = after === undefined ? undefined : { [table.key]: after };
  return tables.find(table, { index: 'key', after: place, limit: BLOCK, columns });
}
