import type { TransactionRow, VisibleStatus } from '../../../../projections/transactions.ts';

const STATUS_CODES: Readonly<Record<VisibleStatus, number>> = { CONFIRMED: 1, EXTERNAL: 2 };

/** The columns of a whole row, under the port's names. */
export const ROW_COLUMNS = `id, account_id AS accountId, revision, status, created_at AS createdAtMs,
  corporate_id AS corporateId, corporate_group_id AS corporateGroupId,
  head, mobile_number AS mobileNumber, fees, pump, odometer`;

export function statusCode(status: VisibleStatus): number {
  return STATUS_CODES[status];
}

/** From a visible row of `ROW_COLUMNS`. */
export function toRow(row: Readonly<Record<string, unknown>>): TransactionRow {
  return {
    id: row.id as number,
    accountId: row.accountId as number,
    status: row.status === statusCode('CONFIRMED') ? 'CONFIRMED' : 'EXTERNAL',
    createdAtMs: row.createdAtMs as number,
    corporateId: row.corporateId as number,
    corporateGroupId: row.corporateGroupId as number | null,
    head: row.head as string,
    mobileNumber: row.mobileNumber as string | null,
    fees: row.fees as string,
    pump: row.pump as string | null,
    odometer: row.odometer as string | null,
  };
}
