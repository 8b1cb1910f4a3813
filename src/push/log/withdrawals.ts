import { NO_RECORD } from '../../../projections/record.ts';
import { put, type Tables } from '../../tables/tables.ts';
import { isOpen } from '../queue/next-state.ts';
import { blocksOf, changeEach, keysOf } from './changes.ts';
import {
  columnsAfter,
  DELIVERIES,
  type DeliveryRow,
  progressOf,
  type StoredRow,
  WITHDRAWALS,
} from './tables.ts';

/** Transactions in one write or one selection. */
const TOGETHER = 500;

/** Marks transactions: deliveries that are enqueued for them from now on are withdrawn. */
export async function markWithdrawn(tables: Tables, transactionIds: readonly number[], atMs: number) {
  for (const ids of inParts(transactionIds)) {
    const below = { below: { made_at: atMs } };
    await tables.write(ids.map((id) => put(WITHDRAWALS, { transaction_id: id, made_at: atMs }, below)));
  }
}

/**
 * Returns which of the transactions were withdrawn, and ends their open deliveries as if they had been stored as
 * withdrawn. Whoever makes a delivery due calls this afterwards, so that a withdrawal at the same time is not missed.
 */
export async function endWithdrawn(
  tables: Tables,
  transactionIds: readonly number[],
): Promise<ReadonlySet<number>> {
  const marks = await tables.get(WITHDRAWALS, [...new Set(transactionIds)]);
  const withdrawn = marks.map(({ transaction_id }) => transaction_id);
  for (const selection of ofTransactions(withdrawn)) {
    for await (const block of blocksOf(tables, selection)) {
      const keys = keysOf(block.filter((row) => isOpen(progressOf(row))));
      await changeEach<DeliveryRow, StoredRow>(tables, { table: DELIVERIES, keys }, (row) => {
        const columns = columnsAfter(row, { kind: 'withdraw' }, row.created_at);
        return columns && { ...columns, record: NO_RECORD, erased: 1 };
      });
    }
  }
  return new Set(withdrawn);
}

/** The selections of all deliveries of these transactions. */
export function* ofTransactions(transactionIds: readonly number[]) {
  for (const ids of inParts(transactionIds))
    yield { index: 'by_transaction', equals: { transaction_id: ids } } as const;
}

export function* inParts(transactionIds: readonly number[]): Generator<number[]> {
  const ids = [...new Set(transactionIds)];
  for (let from = 0; from < ids.length; from += TOGETHER) yield ids.slice(from, from + TOGETHER);
}
