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
  const { revision: _, status, ...rest } = row;
  return { ...rest, status: statusOf(status) } as TransactionRow;
}

/** From the values of `ROW_COLUMNS`; `undefined` for a tombstone. */
export function rowOfValues(values: readonly unknown[]): TransactionRow | undefined {
  if (values[3] === null) return undefined;
  return {
    id: values[0] as number,
    accountId: values[1] as number,
    status: statusOf(values[3]),
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

function statusOf(code: unknown): VisibleStatus {
  return code === statusCode('CONFIRMED') ? 'CONFIRMED' : 'EXTERNAL';
}
