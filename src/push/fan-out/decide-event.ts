import {
  type DeliveryDecision,
  decideDeliveries,
  type OwedDelivery,
} from '../../../projections/deliveries.ts';
import type { TransactionRow } from '../../../projections/transactions.ts';
import type { Clock } from '../../base/clock.ts';
import type { Account } from '../../domain/account.ts';
import type { Environment } from '../../domain/account-events.ts';
import { WEBHOOK_TYPES } from '../../domain/transaction-events.ts';
import { firstPosition, recordedAtMs } from '../../event-store/codec.ts';
import type { RecordedEvent } from '../../event-store/recorded-event.ts';
import { deliveryId } from '../message/envelope.ts';
import type { NewDelivery } from '../queue/delivery.ts';
import type { AccountHistory, Judged } from './account-history.ts';

export interface DecisionContext {
  readonly history: AccountHistory;
  readonly clock: Clock;
  readonly environment: Environment;
  readonly retentionMs: number;
}

/** To whom a transaction is owed, or why that is not known. */
export type Decided = DeliveryDecision | { readonly unreadable: string };

/** To whom the transaction that the event records is owed, by its account before the event. */
export async function decideAsOf(
  event: RecordedEvent,
  row: TransactionRow,
  context: DecisionContext,
): Promise<Decided> {
  const { place, judge } = questionOf(event, row, context);
  return decidedBy(await context.history.asOf(place, judge));
}

/** As `decideAsOf`, where the account's events were read before; `undefined` otherwise. */
export function decideKnown(
  event: RecordedEvent,
  row: TransactionRow,
  context: DecisionContext,
): Decided | undefined {
  const { place, judge } = questionOf(event, row, context);
  const judged = context.history.known(place, judge);
  return judged && decidedBy(judged);
}

function questionOf(
  event: RecordedEvent,
  row: TransactionRow,
  { clock, environment, retentionMs }: DecisionContext,
) {
  const transaction = { createdAtMs: row.createdAtMs, recordedAtMs: recordedAtMs(event) };
  const terms = { retentionMs, nowMs: clock.now(), environment };
  const place = { accountId: row.accountId, position: firstPosition(event) };
  const judge = (account: Account | undefined) => decideDeliveries(transaction, account, terms);
  return { place, judge };
}

function decidedBy(judged: Judged<DeliveryDecision>): Decided {
  return judged.kind === 'unreadable' ? { unreadable: judged.reason } : judged.value;
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
