import type { TransactionRow } from '../../../../projections/transactions.ts';
import type { StoredRow } from '../../../pull/view/bulk-reads.ts';
import { rowOf } from './documents.ts';
import type { Generation } from './generations.ts';

export async function findRow(
  { rows }: Generation,
  transactionId: number,
): Promise<TransactionRow | 'hidden' | undefined> {
  const found = await rows.findOne({ _id: transactionId });
  return found === null ? undefined : (rowOf(found) ?? 'hidden');
}

export async function findMany(
  { rows }: Generation,
  transactionIds: readonly number[],
): Promise<Map<number, StoredRow>> {
  const found = await rows.find({ _id: { $in: [...transactionIds] } }, { hint: '_id_' }).toArray();
  return new Map(
    found.map((document) => [
      document._id,
      { revision: document.revision, row: rowOf(document) ?? 'hidden' },
    ]),
  );
}

export async function rowsAfter(
  { rows }: Generation,
  afterId: number,
  limit: number,
): Promise<TransactionRow[]> {
  if (limit <= 0) return []; // to MongoDB it would mean no limit
  const found = rows.find({ _id: { $gt: afterId }, place: { $exists: true } }, { hint: '_id_' });
  const documents = await found.sort({ _id: 1 }).limit(limit).toArray();
  return documents.flatMap((document) => rowOf(document) ?? []);
}

export async function idsAfter({ rows }: Generation, afterId: number, limit: number): Promise<number[]> {
  if (limit <= 0) return [];
  const visible = { _id: { $gt: afterId }, place: { $exists: true } };
  const found = rows.find(visible, { projection: { _id: 1 }, hint: '_id_' });
  return (await found.sort({ _id: 1 }).limit(limit).toArray()).map(({ _id }) => _id);
}
