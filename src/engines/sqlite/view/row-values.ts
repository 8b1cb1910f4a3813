import type { RowState } from '../../../../projections/transactions.ts';
import { statusCode, statusOf } from '../../stored/rows.ts';

/**
 * The values of `ROW_COLUMNS`. As an array, since SQLite's objects cost 2.5 microseconds more for each row; from that some
 * 12 % is reckoned of a rebuild beside the served view, which reads the rows of both.
 */
export type RowValues = [
  id: number,
  accountId: number,
  revision: number,
  status: number | null,
  createdAtMs: number | null,
  corporateId: number | null,
  corporateGroupId: number | null,
  head: string | null,
  mobileNumber: string | null,
  fees: string | null,
  pump: string | null,
  odometer: string | null,
];

/** In the table's own order. */
export const ROW_COLUMNS = [
  ...['id', 'account_id', 'revision', 'status', 'created_at', 'corporate_id', 'corporate_group_id'],
  ...['head', 'mobile_number', 'fees', 'pump', 'odometer'],
];

export function valuesOf(id: number, { accountId, revision, shown }: RowState): RowValues {
  if (shown === null) return [id, accountId, revision, null, null, null, null, null, null, null, null, null];
  return [
    id,
    accountId,
    revision,
    statusCode(shown.status),
    shown.createdAtMs,
    shown.corporateId,
    shown.corporateGroupId,
    shown.head,
    shown.mobileNumber,
    shown.fees,
    shown.pump,
    shown.odometer,
  ];
}

export function stateOf(values: RowValues): RowState {
  const [id, accountId, revision, status, createdAtMs, corporateId, corporateGroupId, ...record] = values;
  const [head, mobileNumber, fees, pump, odometer] = record;
  if (status === null || createdAtMs === null || corporateId === null || head === null || fees === null) {
    return { revision, accountId, shown: null };
  }
  const place = { id, accountId, status: statusOf(status, id), createdAtMs, corporateId, corporateGroupId };
  return { revision, accountId, shown: { ...place, head, mobileNumber, fees, pump, odometer } };
}
