import {
  type DeliveryDecision,
  decideDeliveries,
  type OwedDelivery,
} from '../../../projections/deliveries.ts';
import { withoutMobileNumber } from '../../../projections/record.ts';
import type { TransactionRow } from '../../../projections/transactions.ts';
import type { Clock } from '../../base/clock.ts';
import type { Environment } from '../../domain/account-events.ts';
import { WEBHOOK_TYPES } from '../../domain/transaction-events.ts';
import { firstPosition, occurredAtMs } from '../../event-store/codec.ts';
import type { RecordedEvent } from '../../event-store/recorded-event.ts';
import { deliveryId } from '../message/envelope.ts';
import type { NewDelivery } from '../queue/delivery.ts';
import type { AccountHistory, AsOf, UnreadableAccount } from './account-history.ts';

export interface DecisionContext {
  readonly history: AccountHistory;
  readonly clock: Clock;
  readonly environment: Environment;
  readonly retentionMs: number;
}

/** Decides to which keys the event's transaction is owed, by its account as it was before the event. */
export async function decideAsOf(
  event: RecordedEvent,
  row: TransactionRow,
  { history, clock, environment, retentionMs }: DecisionContext,
): Promise<DeliveryDecision | UnreadableAccount> {
  const transaction = { createdAtMs: row.createdAtMs, occurredAtMs: occurredAtMs(event) };
  const terms = { retentionMs, nowMs: clock.now(), environment };
  return history.asOf(placeOf(event, row), (account) => decideDeliveries(transaction, account, terms));
}

/** The place in the log by which the account of an event's transaction is judged. */
export function placeOf(event: RecordedEvent, { accountId }: Pick<TransactionRow, 'accountId'>): AsOf {
  return { accountId, position: firstPosition(event) };
}

/** Makes the delivery of the event's transaction, whose row is given, to a key that it is owed to. */
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
  return {
    id: deliveryId(prefix, row.id),
    prefix,
    accountId: row.accountId,
    transactionId: row.id,
    type: WEBHOOK_TYPES[row.status],
    createdAtMs: nowMs,
    position: firstPosition(event),
    occurredAtMs: occurredAtMs(event),
    record: mobileNumber ? row.record : withoutMobileNumber(row.record),
  };
}
