import { put, type Tables } from '../../tables/tables.ts';
import { isOpen, NO_RECORD } from '../queue/next-state.ts';
import { blocksOf, changeEach, keysOf } from './changes.ts';
import { columnsAfter, progressOf, WITHDRAWALS } from './tables.ts';

/** Transactions of one write, or of one selection. */
const TOGETHER = 500;

/** What is enqueued for the transactions from now on is withdrawn. */
export async function markWithdrawn(tables: Tables, transactionIds: readonly number[], atMs: number) {
  for (const ids of inParts(transactionIds)) {
    const below = { below: { made_at: atMs } };
    await tables.write(ids.map((id) => put(WITHDRAWALS, { transaction_id: id, made_at: atMs }, below)));
  }
}

/**
 * Which of the transactions were withdrawn. Their open deliveries end as if they had been stored as withdrawn. Whoever
 * makes a delivery due looks for the mark after that, so that a withdrawal is final in either order.
 */
export async function endWithdrawn(
  tables: Tables,
  transactionIds: readonly number[],
): Promise<ReadonlySet<number>> {
  const marks = await tables.get(WITHDRAWALS, [...new Set(transactionIds)]);
  const withdrawn = marks.map(({ transaction_id }) => transaction_id);
  for (const selection of ofTransactions(withdrawn)) {
    for await (const block of blocksOf(tables, selection)) {
      const open = block.filter((row) => isOpen(progressOf(row)));
      await changeEach(tables, keysOf(open), (row) => {
        const columns = columnsAfter(row, { kind: 'withdraw' }, row.created_at);
        return columns && { ...columns, record: JSON.stringify(NO_RECORD), erased: 1 };
      });
    }
  }
  return new Set(withdrawn);
}

/** The parts of the index that have the deliveries of these transactions. */
export function* ofTransactions(transactionIds: readonly number[]) {
  for (const ids of inParts(transactionIds))
    yield { index: 'by_transaction', equals: { transaction_id: ids } } as const;
}

export function* inParts(transactionIds: readonly number[]): Generator<number[]> {
  const ids = [...new Set(transactionIds)];
  for (let from = 0; from < ids.length; from += TOGETHER) yield ids.slice(from, from + TOGETHER);
}
