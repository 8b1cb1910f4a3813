import type { TransactionRow } from '../../../../projections/transactions.ts';
import { statusOf } from '../../../pull/view/status-codes.ts';

/** The columns of a whole row, under the port's names. */
export const ROW_COLUMNS = `id, account_id AS accountId, revision, status, created_at AS createdAtMs,
  corporate_id AS corporateId, corporate_group_id AS corporateGroupId,
  head, mobile_number AS mobileNumber, fees, pump, odometer`;

/** From a visible row of `ROW_COLUMNS`. */
export function toRow(row: Readonly<Record<string, unknown>>): TransactionRow {
  const { revision: _, status, ...rest } = row;
  return { ...rest, status: statusOf(status, row.id as number) } as TransactionRow;
}

/** From the values of `ROW_COLUMNS`; `undefined` for a tombstone. */
export function rowOfValues(values: readonly unknown[]): TransactionRow | undefined {
  if (values[3] === null) return undefined;
  return {
    id: values[0] as number,
    accountId: values[1] as number,
    status: statusOf(values[3], values[0] as number),
    createdAtMs: values[4] as number,
    corporateId: values[5] as number,
    corporateGroupId: values[6] as number | null,
    head: values[7] as string,
    mobileNumber: values[8] as string | null,
    fees: values[9] as string,
    pump: values[10] as string | null,
    odometer: values[11] as string | null,
  };
}
