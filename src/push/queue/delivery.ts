import type { RenderedRecord } from '../../../projections/record.ts';
import type { TransactionWebhookType } from '../../domain/transaction-events.ts';
import type { Position } from '../../event-store/recorded-event.ts';

/** It can be redelivered without limit. One takes 60 KiB at most, and all fit into a document of MongoDB (16 MiB). */
export const MAX_ATTEMPTS_KEPT = 50;

export const DELIVERY_STATES = ['pending', 'held', 'delivered', 'failed', 'withdrawn'] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** What is owed: a transaction to a webhook, once. */
export interface OwedKey {
  readonly transactionId: number;
  /** Of the key, and the name of its lane: deliveries of one webhook share limits and health. */
  readonly prefix: string;
}

/** What is owed to one key: created once, never changed. */
export interface NewDelivery extends OwedKey {
  /** UUIDv5 of `<key prefix>/<transaction id>`; random for a test. */
  readonly id: string;
  readonly accountId: number;
  readonly type: TransactionWebhookType;
  readonly createdAtMs: number;
  /** Of the transaction's event, by which agreement is proven. */
  readonly position: Position;
  readonly recordedAtMs: number;
  /** As of the event: whether it holds the mobile number depends on the key at that time. */
  readonly record: RenderedRecord;
}

export interface Delivery extends NewDelivery {
  readonly state: DeliveryState;
  /** Why it ended, where it ended without a delivery. */
  readonly reason: string | null;
  /** 1 at first, one more with each redelivery. */
  readonly cycle: number;
  /** Recorded attempts of this cycle. */
  readonly attemptsInCycle: number;
  /** When the next attempt is due, or the lease of the claim ends; `null` unless pending. */
  readonly dueAtMs: number | null;
  /** The newest `MAX_ATTEMPTS_KEPT`, in order. */
  readonly attempts: readonly Attempt[];
}

/** A delivery without its record and attempts, as lists show it. */
export type DeliverySummary = Omit<Delivery, 'record' | 'attempts'>;

type OfReceiver = 'dns' | 'forbidden' | 'connect' | 'tls' | 'timeout' | 'protocol' | 'status' | 'cut';
/** `fault`: of this program. */
export type FailureKind = OfReceiver | 'fault';

export interface ReceiverAnswer {
  readonly status: number;
  /** The first 8 KiB, names included. */
  readonly headers: Readonly<Record<string, string>>;
  /** The first 4 KiB as text. */
  readonly body: string;
}

/** A status outside 2xx is a failure with its answer. */
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
  /** Other attempts that were under way at the same host when it started. */
  readonly othersUnderWay: number;
  readonly outcome: AttemptOutcome;
}

/** A delivery that one dispatcher has until its lease ends. */
export interface ClaimedDelivery extends NewDelivery {
  readonly cycle: number;
  /** The attempt to make now: one more than those recorded in this cycle. */
  readonly attemptNumber: number;
  /** Proves the claim: what is reported under another token changes nothing. */
  readonly leaseToken: string;
}

/** The delivery that a report is about, and the claim under which it is made: `null` where it is not claimed. */
export type ReportedClaim = OwedKey & Pick<NewDelivery, 'id'> & { readonly leaseToken: string | null };

/** What is recorded of a claimed delivery. */
export type DeliveryReport = ReportedClaim &
  (
    | { readonly kind: 'delivered'; readonly attempt: Attempt }
    | { readonly kind: 'retry'; readonly attempt: Attempt; readonly dueAtMs: number }
    /** `null` where it ends without an attempt: the key is off, the webhook removed or disabled. */
    | { readonly kind: 'failed'; readonly attempt: Attempt | null; readonly reason: string }
    /** Access checks 4 or 5 fail: no attempt was made, and none is until it is resumed. */
    | { readonly kind: 'held' }
    /** Given back unchanged, due at once unless a time is given: the dispatcher stops, or a clock had put it off. */
    | { readonly kind: 'released'; readonly dueAtMs?: number }
  );

/** The failure streak of one webhook: its failed deliveries since the last success. */
export interface WebhookHealth {
  readonly failedInARow: number;
  /** The first failure of the streak; `null` where there is none, or a hold has ended the time but not the count. */
  readonly failingSinceMs: number | null;
  /** Of the streak's failed deliveries, newest first, at most 5: `503`, `timeout: …`. */
  readonly lastAnswers: readonly string[];
}

export type LaneStreak = WebhookHealth & { readonly prefix: string };
