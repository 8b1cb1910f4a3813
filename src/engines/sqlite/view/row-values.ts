import { REFERENCES, type RowState, referencesBy } from '../../../../projections/transactions.ts';
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
  head: string | null,
  mobileNumber: string | null,
  fees: string | null,
  pump: string | null,
  odometer: string | null,
  ...references: (number | null)[],
];

export const ROW_COLUMNS: readonly string[] = [
  ...['id', 'account_id', 'revision', 'status', 'created_at'],
  ...['head', 'mobile_number', 'fees', 'pump', 'odometer'],
  ...REFERENCES,
];

const NOTHING_SHOWN = ROW_COLUMNS.slice(3).map(() => null);

export function valuesOf(id: number, { accountId, revision, shown }: RowState): RowValues {
  if (shown === null) return [id, accountId, revision, ...NOTHING_SHOWN] as unknown as RowValues;
  return [
    id,
    accountId,
    revision,
    statusCode(shown.status),
    shown.createdAtMs,
    shown.head,
    shown.mobileNumber,
    shown.fees,
    shown.pump,
    shown.odometer,
    ...REFERENCES.map((name) => shown.references[name]),
  ];
}

export function stateOf(values: RowValues): RowState {
  const [id, accountId, revision, status, createdAtMs, head, mobileNumber, fees, pump, odometer, ...found] =
    values;
  if (status === null || createdAtMs === null || head === null || fees === null) {
    return { revision, accountId, shown: null };
  }
  const references = referencesBy((_, index) => found[index] ?? null);
  const place = { id, accountId, status: statusOf(status, id), createdAtMs, references };
  return { revision, accountId, shown: { ...place, head, mobileNumber, fees, pump, odometer } };
}
