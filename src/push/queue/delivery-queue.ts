import type { RenderedRecord } from '../../../projections/record.ts';
import type { TransactionWebhookType } from '../../domain/transaction-events.ts';
import type { Position } from '../../event-store/recorded-event.ts';

/** It can be redelivered without limit. One takes 60 KiB at most, and all fit into a document of MongoDB (16 MiB). */
export const MAX_ATTEMPTS_KEPT = 50;

export const DELIVERY_STATES = ['pending', 'held', 'delivered', 'failed', 'withdrawn'] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** What is owed to one key: created once, never changed. */
export interface NewDelivery {
  /** UUIDv5 of `<key prefix>/<transaction id>`; random for a test. */
  readonly id: string;
  /** Of the key, and the name of its lane: deliveries of one webhook share limits and health. */
  readonly prefix: string;
  readonly accountId: number;
  readonly transactionId: number;
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

/** What a comparison of the log with the events needs of a delivery. */
export type LoggedDelivery = Pick<
  Delivery,
  'id' | 'prefix' | 'accountId' | 'transactionId' | 'state' | 'cycle' | 'recordedAtMs'
>;

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

/** What is recorded of a claimed delivery. */
export type DeliveryReport = Pick<ClaimedDelivery, 'id' | 'prefix' | 'leaseToken'> &
  (
    | { readonly kind: 'delivered'; readonly attempt: Attempt }
    | { readonly kind: 'retry'; readonly attempt: Attempt; readonly dueAtMs: number }
    /** `null` where it ends without an attempt: the key is off, the webhook removed or disabled. */
    | { readonly kind: 'failed'; readonly attempt: Attempt | null; readonly reason: string }
    /** Access checks 4 or 5 fail: no attempt was made, and none is until `resume`. */
    | { readonly kind: 'held' }
    /** Given back unchanged, due at once: the dispatcher stops. */
    | { readonly kind: 'released' }
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

export interface ClaimOptions {
  readonly nowMs: number;
  readonly holder: string;
  readonly leaseMs: number;
  /** Deliveries in all, at most. */
  readonly limit: number;
  /** Deliveries of one lane, at most. */
  readonly laneCapacity: (prefix: string) => number;
}

/** Each is counted up to the limit: that number means so many or more. */
export interface Backlog {
  readonly pending: number;
  readonly held: number;
  /** Webhooks with a failure streak. */
  readonly failingLanes: number;
  /** When the first of the pending ones is due, or its lease ends. */
  readonly nextDueAtMs: number | undefined;
}

/** An attempt without what its receiver wrote. */
export interface LaneAttempt extends Pick<Attempt, 'startedAtMs' | 'durationMs'> {
  readonly deliveryId: string;
  readonly ok: boolean;
  /** The receiver's status, or the kind of the failure where there was no answer. */
  readonly answer: string;
}

export interface DeliveryFilter {
  readonly prefix?: string | undefined;
  readonly accountId?: number | undefined;
  readonly transactionId?: number | undefined;
  readonly state?: DeliveryState | undefined;
  /** On `createdAtMs`, inclusive. */
  readonly sinceMs?: number | undefined;
  readonly untilMs?: number | undefined;
}

/** A place in the order of `page`: it stays one when its delivery has been removed. */
export type DeliveryPlace = Pick<Delivery, 'createdAtMs' | 'id'>;

export interface PageOptions {
  readonly limit: number;
  readonly after?: DeliveryPlace | undefined;
  /** Entries of the index that are read at most, whatever is found among them: for who looks again and again. */
  readonly maxRead?: number | undefined;
}

export interface DeliveryPage {
  readonly deliveries: readonly DeliverySummary[];
  /** What the next page continues after; `undefined` at the end of the log. */
  readonly next: DeliveryPlace | undefined;
}

export type LogName = { readonly id: string; readonly startedAtMs: number };

/** A delivery with everything that a log holds of it, except its claim. */
export interface StoredDelivery extends Delivery {
  readonly endedAtMs: number | null;
}

/** What `store copy` brings into another log. */
export interface LogContent {
  readonly name?: LogName;
  readonly deliveries?: readonly StoredDelivery[];
  /** Ids of withdrawn transactions. */
  readonly withdrawn?: readonly number[];
  readonly streaks?: readonly LaneStreak[];
}

/** Called on the listener's own thread. */
export type WorkListener = { notify(): void };

/** Notifies of possible new work. */
export interface WorkSignal {
  add(listener: WorkListener): void;
  remove(listener: WorkListener): void;
}

/** What the dispatcher does. `next-state.ts` lists which change a delivery takes in which state, and what it sets. */
export interface DeliveryWork {
  /** Notifies of work of another process, and of what a call made due and did not hand out. */
  readonly changed: WorkSignal;
  /**
   * Stores deliveries durably, due at `createdAtMs`, those of a withdrawn transaction as `withdrawn`. One whose id exists
   * changes nothing: the same call, repeated after an interruption, stores the rest. With `claimFor` new ones are claimed
   * in the same step, up to the lane's capacity: the first attempt costs no second commit.
   */
  enqueue(
    deliveries: readonly NewDelivery[],
    claimFor?: Omit<ClaimOptions, 'limit'>,
  ): Promise<readonly ClaimedDelivery[]>;
  /**
   * Hands out due deliveries, each to one dispatcher at a time: the oldest of a lane first, the lanes that wait longest
   * first, and never more of a lane than its capacity, so that a dead receiver's backlog delays nobody. A claim whose
   * lease ended without a report is due again, with the same attempt number. Reads one index entry for each lane with
   * something due, and only the deliveries that it hands out.
   */
  claim(options: ClaimOptions): Promise<readonly ClaimedDelivery[]>;
  /**
   * Records outcomes durably, in the order given, each once however often it is reported, and returns the health of each
   * lane whose failure streak changed, as the last of them left it. A report counts while its token is the delivery's
   * last, also when the lease has ended. Two count without it, in the delivery's present cycle: a success, whatever the
   * state; and the failed attempt that was under way when its delivery ended, which is kept outside the streak.
   */
  report(reports: readonly DeliveryReport[]): Promise<ReadonlyMap<string, WebhookHealth>>;
  /**
   * When the next delivery is due, or a lease ends. With `laterThanMs` lanes with something due by then are left out: after
   * a claim at that time they are full, and continue when one of their own attempts ends.
   */
  nextDueAtMs(laterThanMs?: number): Promise<number | undefined>;
  /** Accounts that have held deliveries. */
  heldAccounts(): Promise<readonly number[]>;
  /**
   * Makes an account's held deliveries due, with the attempts they have left, and ends the time (not the count) of their
   * lanes' failure streaks; says how many. In batches: after an interruption the rest is still held.
   */
  resume(accountId: number, nowMs: number): Promise<number>;
  /** Ends these open deliveries of a lane as failed, outside the streak; says how many. As `resume`. */
  endLane(prefix: string, reason: string, nowMs: number, which?: OpenOfLane): Promise<number>;
  /** Forgets a lane's failure streak, once for each time its webhook was enabled, unless it began then or later. */
  resetHealth(prefix: string, enabledAtMs: number): Promise<void>;
}

/** All open deliveries of a lane, unless these say less. */
export interface OpenOfLane {
  /** Those of events before this position. */
  readonly before?: Position;
  /** In these cycles: from 2 on they were redelivered. */
  readonly fromCycle?: number;
  readonly toCycle?: number;
}

/** What an operator, an event or the retention does to what is stored. */
export interface DeliveryControl {
  /** Ends the open deliveries of a transaction, and those that are enqueued later. */
  withdraw(transactionId: number, nowMs: number): Promise<void>;
  /** Withdraws, and empties the records of all deliveries of the transaction and what receivers said. */
  erase(transactionId: number, nowMs: number): Promise<void>;
  /** Takes the driver out of the records of the transaction's deliveries, and what receivers said; says of how many. */
  redact(transactionId: number): Promise<number>;
  /**
   * Starts a new cycle of a failed delivery, or with `force` of a delivered one; otherwise says why not (`pending` also of
   * a held one). One of a withdrawn transaction is never made due again, also where it was delivered or failed before.
   */
  redeliver(
    id: string,
    options: { readonly force: boolean; readonly dueAtMs: number },
  ): Promise<'due' | 'not known' | 'withdrawn' | 'delivered' | 'pending'>;
  /** Removes at most `limit` deliveries that ended before a time, oldest first; says how many. */
  purge(endedBeforeMs: number, limit: number): Promise<number>;
  /** Forgets at most `limit` withdrawals made (last) before a time, oldest first; says how many. */
  purgeWithdrawals(madeBeforeMs: number, limit: number): Promise<number>;
  /**
   * Stores things of another log unchanged in place of those with the same id, while nothing is delivered from either:
   * storing twice changes nothing. A claimed delivery becomes due at its own due time. A log takes another name while it
   * holds no deliveries; otherwise it rejects with `REFUSED`.
   */
  store(content: LogContent): Promise<void>;
}

/** Deliveries as they are looked for. Each result may be changed without changing the log. */
export interface DeliveryReads {
  /** A new log gets a random UUID. */
  logId(): Promise<LogName>;
  find(id: string): Promise<Delivery | undefined>;
  /** Newest first by `createdAtMs`, then `id`. */
  page(filter: DeliveryFilter, options: PageOptions): Promise<DeliveryPage>;
  /** In any order. */
  ofTransactions(transactionIds: readonly number[]): Promise<readonly LoggedDelivery[]>;
  /** Ids of transactions with deliveries, distinct and ascending: at most `limit`, and none only where there is none. */
  transactionsAfter(afterId: number, limit: number): Promise<readonly number[]>;
  /** The next deliveries by id, some MiB at most; none only at the end. */
  storedAfter(id: string): Promise<readonly StoredDelivery[]>;
  /** The next withdrawn transactions by id; none only at the end. */
  withdrawnAfter(transactionId: number): Promise<readonly number[]>;
}

/** Lanes as they are looked at while the service runs: the cost of each does not grow with the log. */
export interface LaneReads {
  health(prefix: string): Promise<WebhookHealth>;
  /** The lanes with a failure streak, the longest first. */
  failingLanes(limit: number): Promise<readonly LaneStreak[]>;
  /** Of the newest deliveries of a lane that were attempted, found among its newest `maxRead`; oldest attempt first. */
  attempts(
    prefix: string,
    limits: { readonly deliveries: number; readonly maxRead: number },
  ): Promise<readonly LaneAttempt[]>;
  backlog(limit: number, prefix?: string): Promise<Backlog>;
}

/** The delivery log and the work that is left in it. After `close` every call rejects with `STORE_CLOSED`. */
export interface DeliveryQueue extends DeliveryWork, DeliveryControl, DeliveryReads, LaneReads {
  close(): Promise<void>;
}
