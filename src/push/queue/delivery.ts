import type { TransactionWebhookType } from '../../domain/transaction-events.ts';
import type { Position } from '../../event-store/recorded-event.ts';

/** A delivery can be redelivered without limit. An attempt takes at most 60 KiB, so these fit into a MongoDB document (16 MiB). */
export const MAX_ATTEMPTS_KEPT = 50;

export const DELIVERY_STATES = ['pending', 'delivered', 'failed', 'withdrawn'] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** A transaction owed to a webhook, once. */
export interface OwedKey {
  readonly transactionId: number;
  /** The key's prefix. Deliveries of one webhook share a lane of that name, with its limits and health. */
  readonly prefix: string;
}

/** A delivery as it is created. None of this changes later, except when the record is redacted or erased. */
export interface NewDelivery extends OwedKey {
  /** UUIDv5 of `<key prefix>/<transaction id>`; random for a test. */
  readonly id: string;
  readonly accountId: number;
  readonly type: TransactionWebhookType;
  readonly createdAtMs: number;
  /** The position of the transaction's event. */
  readonly position: Position;
  /** The time at which the event happened. */
  readonly occurredAtMs: number;
  /**
   * The record as of the event. It has the mobile number if the key could see it at that time. `NO_RECORD` once the transaction is
   * erased, and in a delivery that was stored after the withdrawal of its transaction.
   */
  readonly record: string;
}

export interface Delivery extends NewDelivery {
  readonly state: DeliveryState;
  /** The reason why it ended without being delivered. */
  readonly reason: string | null;
  /** 1 at first, and one more with each redelivery. */
  readonly cycle: number;
  /** Recorded attempts of this cycle. */
  readonly attemptsInCycle: number;
  /** When the next attempt is due, or the lease of the claim ends; `null` unless it is pending. */
  readonly dueAtMs: number | null;
  /** The newest `MAX_ATTEMPTS_KEPT` attempts, in order. */
  readonly attempts: readonly Attempt[];
}

/** A delivery without its record and attempts, as lists show it. */
export type DeliverySummary = Omit<Delivery, 'record' | 'attempts'>;

export type FailureKind =
  | 'dns'
  | 'forbidden'
  | 'connect'
  | 'tls'
  | 'timeout'
  | 'protocol'
  | 'status'
  | 'cut'
  /** A fault of the operator's proxy. It is shown by `fuel webhook test`, and not recorded. */
  | 'proxy'
  /** A fault of this program, not of the receiver. */
  | 'fault';

export interface ReceiverAnswer {
  readonly status: number;
  /** The first 8 KiB of headers, names included. */
  readonly headers: Readonly<Record<string, string>>;
  /** The first 4 KiB of the body, as text. */
  readonly body: string;
}

/** The outcome of an attempt. A status outside 2xx is a failure that has an answer. */
export type AttemptOutcome =
  | { readonly ok: true; readonly answer: ReceiverAnswer }
  | {
      readonly ok: false;
      readonly kind: FailureKind;
      readonly detail: string;
      readonly answer: ReceiverAnswer | null;
    };

export interface Attempt {
  readonly cycle: number;
  /** 1, 2, 3 within its cycle. */
  readonly number: number;
  readonly startedAtMs: number;
  readonly durationMs: number;
  /** How many other attempts were under way at the same host when it started. */
  readonly othersUnderWay: number;
  /** True if the request was sent a second time, because a kept connection was cut before a byte of the answer. */
  readonly sentAgain?: boolean;
  readonly outcome: AttemptOutcome;
}

/** A delivery that belongs to one dispatcher until its lease ends. */
export interface ClaimedDelivery extends NewDelivery {
  readonly cycle: number;
  /** The number of the attempt to make now: one more than those recorded in this cycle. */
  readonly attemptNumber: number;
  /** Proves the claim: a report under another token changes nothing. */
  readonly leaseToken: string;
}

/** The delivery that a report is about, and the token of its claim: `null` if it is not claimed. */
export type ReportedClaim = OwedKey & Pick<NewDelivery, 'id'> & { readonly leaseToken: string | null };

/** The outcome of a claimed delivery. */
export type DeliveryReport = ReportedClaim &
  (
    | { readonly kind: 'delivered'; readonly attempt: Attempt }
    | { readonly kind: 'retry'; readonly attempt: Attempt; readonly dueAtMs: number }
    /** The attempt is `null` if it ends without one: the key is off, or the webhook was removed or disabled. */
    | {
        readonly kind: 'failed';
        readonly attempt: Attempt | null;
        readonly reason: string;
        /** Since when the account has had access. The time of a failure streak begins no earlier. */
        readonly accessSinceMs?: number;
      }
    /** Given back unchanged, and due at once unless a time is given: the dispatcher stops, or a wrong clock had put it off. */
    | { readonly kind: 'released' }
  );

/** The failure streak of one webhook: its failed deliveries since the last success. */
export interface WebhookHealth {
  readonly failedInARow: number;
  /** The first failure of the streak; `null` if there is none since the account has had access. */
  readonly failingSinceMs: number | null;
  /** The last answers to failed deliveries of the streak, newest first, at most 5: `503`, `timeout: …`. */
  readonly lastAnswers: readonly string[];
}

export type LaneStreak = WebhookHealth & { readonly prefix: string };
