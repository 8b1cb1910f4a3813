import {
  type DeliveryDecision,
  decideDeliveries,
  type OwedDelivery,
} from '../../../projections/deliveries.ts';
import type { TransactionChange, TransactionRow } from '../../../projections/transactions.ts';
import type { Clock } from '../../base/clock.ts';
import type { Environment } from '../../domain/account-events.ts';
import { WEBHOOK_TYPES } from '../../domain/transaction-events.ts';
import { firstPosition, recordedAtMs } from '../../event-store/codec.ts';
import type { RecordedEvent } from '../../event-store/recorded-event.ts';
import { projectEvent, RowFold, type ViewChange } from '../../pull/record/project-event.ts';
import { deliveryId } from '../message/envelope.ts';
import type { NewDelivery } from '../queue/delivery.ts';
import type { AccountHistory } from './account-history.ts';

export type Classified =
  | { readonly change: TransactionChange }
  | { readonly stale: true }
  | { readonly illegal: string };

export interface DecisionContext {
  readonly history: AccountHistory;
  readonly clock: Clock;
  readonly environment: Environment;
  readonly retentionMs: number;
}

/** What the event changes, by the rules of the view: both channels agree on what counts. `history`: the events of its stream. */
export function classify(
  event: RecordedEvent,
  projected: ViewChange,
  history: readonly RecordedEvent[],
): Classified {
  if ('parkReason' in projected) return { illegal: projected.parkReason };
  if (event.revision === 0) return { change: projected.change };
  const fold = new RowFold();
  for (const earlier of history) {
    if (earlier.revision >= event.revision) break;
    fold.apply(projectEvent(earlier));
  }
  const effect = fold.apply(projected);
  if (effect.kind === 'parked') return { illegal: effect.reason };
  return effect.kind === 'no change' ? { stale: true } : { change: projected.change };
}

/** To whom the transaction that the event records is owed, by its account before the event; or why that is not known. */
export async function decideAsOf(
  event: RecordedEvent,
  row: TransactionRow,
  { history, clock, environment, retentionMs }: DecisionContext,
): Promise<DeliveryDecision | { readonly unreadable: string }> {
  const transaction = { createdAtMs: row.createdAtMs, recordedAtMs: recordedAtMs(event) };
  const terms = { retentionMs, nowMs: clock.now(), environment };
  const place = { accountId: row.accountId, position: firstPosition(event) };
  const decided = await history.asOf(place, (account) => decideDeliveries(transaction, account, terms));
  return decided.kind === 'unreadable' ? { unreadable: decided.reason } : decided.value;
}

/** The delivery of what the event records, which is `row`, to one of the keys that it is owed to. */
export function newDelivery({
  event,
  row,
  owed: { prefix, mobileNumber },
  nowMs,
}: {
  readonly event: RecordedEvent;
  readonly row: TransactionRow;
  readonly owed: OwedDelivery;
  readonly nowMs: number;
}): NewDelivery {
  const { head, fees, pump, odometer } = row;
  return {
    id: deliveryId(prefix, row.id),
    prefix,
    accountId: row.accountId,
    transactionId: row.id,
    type: WEBHOOK_TYPES[row.status],
    createdAtMs: nowMs,
    position: firstPosition(event),
    recordedAtMs: recordedAtMs(event),
    record: { head, mobileNumber: mobileNumber ? row.mobileNumber : null, fees, pump, odometer },
  };
}
