import { recordText } from '../../../projections/record.ts';
import { projectTransaction } from '../../../projections/transactions.ts';
import { confirmedData } from './records.ts';

/** Returns a confirmed transaction as both channels print it, with any member of its event replaced. */
export function printedRecord(
  id: number,
  overrides: Readonly<Record<string, unknown>> = {},
  expiresAt = '2026-09-04T00:00:00.000Z',
): string {
  const data = confirmedData({ transaction_id: id, ...overrides });
  const change = projectTransaction('TransactionConfirmed', data, 0);
  if (change.kind !== 'show') throw new Error(`transaction ${id} is not shown`);
  const presign = (key: string): string => `https://photos.example.com/${key}?until=${expiresAt}`;
  return recordText(change.row.record, { mobileNumber: true, presign, expiresAt });
}
