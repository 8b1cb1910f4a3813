import type { RenderedRecord, RowState, TransactionRow } from '../../../../projections/transactions.ts';
import { statusCode, statusOf } from '../../../pull/view/status-codes.ts';

/** A `Place` in one field, so that an index orders by both and a page after a cursor is one range. */
export interface PlaceField {
  readonly created_at: Date;
  readonly id?: number;
}

/** Only of a visible row; what is null in the record is absent here. */
interface VisibleFields {
  readonly status: number;
  readonly place: PlaceField;
  readonly corporate_id: number;
  readonly corporate_group_id?: number | undefined;
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

export function documentOf(row: TransactionRow, revision: number): TransactionDocument {
  return {
    _id: row.id,
    account_id: row.accountId,
    revision,
    status: statusCode(row.status),
    place: { created_at: new Date(row.createdAtMs), id: row.id },
    corporate_id: row.corporateId,
    corporate_group_id: row.corporateGroupId ?? undefined,
    head: row.head,
    mobile_number: row.mobileNumber ?? undefined,
    fees: row.fees,
    pump: row.pump ?? undefined,
    odometer: row.odometer ?? undefined,
  };
}

/** The row that the document shows; `undefined` for a tombstone. */
export function rowOf(document: TransactionDocument): TransactionRow | undefined {
  const { status, place, corporate_id: corporateId, head, fees } = document;
  if (place === undefined || corporateId === undefined || head === undefined || fees === undefined) {
    return undefined;
  }
  return {
    id: document._id,
    accountId: document.account_id,
    status: statusOf(status, document._id),
    createdAtMs: place.created_at.getTime(),
    corporateId,
    corporateGroupId: document.corporate_group_id ?? null,
    ...recordOf({ ...document, head, fees }),
  };
}

export function stateOf(document: TransactionDocument): RowState {
  return {
    revision: document.revision,
    accountId: document.account_id,
    shown: rowOf(document) ?? null,
  };
}

function recordOf(
  document: Pick<VisibleFields, 'head' | 'mobile_number' | 'fees' | 'pump' | 'odometer'>,
): RenderedRecord {
  return {
    head: document.head,
    mobileNumber: document.mobile_number ?? null,
    fees: document.fees,
    pump: document.pump ?? null,
    odometer: document.odometer ?? null,
  };
}
