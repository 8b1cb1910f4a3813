import {
  NO_ACCOUNT,
  REFERENCES,
  type Reference,
  type RowState,
  referencesBy,
  type TransactionRow,
} from '../../../../projections/transactions.ts';
import { statusCode, statusOf } from '../../stored/rows.ts';

/** A `Place` in one field, so that an index orders by both and a page after a cursor is one range. */
export interface PlaceField {
  readonly created_at: Date;
  readonly id?: number;
}

/** Only of a visible row; what is null in the record is absent here. */
interface VisibleFields extends Partial<Readonly<Record<Reference, number | undefined>>> {
  readonly status: number;
  readonly place: PlaceField;
  readonly head: string;
  readonly mobile_number?: string | undefined;
  readonly fees: string;
  readonly pump?: string | undefined;
  readonly odometer?: string | undefined;
}

/**
 * A transaction; without `place` it is a tombstone. An erased one keeps its account, where that was known: in a sharded
 * cluster the account decides on which shard a row is, and a row can't leave its shard in one write.
 */
export type TransactionDocument = {
  readonly _id: number;
  readonly account_id: number;
  readonly revision: number;
} & Partial<VisibleFields>;

export interface ParkedDocument {
  /** The event's position. */
  readonly _id: number;
  readonly stream: string;
  readonly revision: number;
  readonly type: string;
  readonly reason: string;
  readonly parked_at: Date;
}

/** What a row becomes: `before` is the document that it replaces. */
export function documentOf(
  id: number,
  { accountId, revision, shown }: RowState,
  before?: TransactionDocument,
): TransactionDocument {
  const account_id = accountId === NO_ACCOUNT ? (before?.account_id ?? NO_ACCOUNT) : accountId;
  if (shown === null) return { _id: id, account_id, revision };
  return {
    _id: id,
    account_id,
    revision,
    status: statusCode(shown.status),
    place: { created_at: new Date(shown.createdAtMs), id },
    ...Object.fromEntries(REFERENCES.map((name) => [name, shown.references[name] ?? undefined])),
    head: shown.head,
    mobile_number: shown.mobileNumber ?? undefined,
    fees: shown.fees,
    pump: shown.pump ?? undefined,
    odometer: shown.odometer ?? undefined,
  };
}

export function stateOf({
  _id: id,
  account_id: accountId,
  revision,
  ...fields
}: TransactionDocument): RowState {
  const { status, place, head, fees } = fields;
  if (place === undefined || head === undefined || fees === undefined) {
    return { revision, accountId, shown: null };
  }
  const shown: TransactionRow = {
    id,
    accountId,
    status: statusOf(status, id),
    createdAtMs: place.created_at.getTime(),
    references: referencesBy((name) => fields[name] ?? null),
    head,
    mobileNumber: fields.mobile_number ?? null,
    fees,
    pump: fields.pump ?? null,
    odometer: fields.odometer ?? null,
  };
  return { revision, accountId, shown };
}
