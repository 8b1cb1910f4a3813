import type { Position } from '../../event-store/recorded-event.ts';
import type { ChangeSignal, Tables } from '../../tables/tables.ts';
import type {
  ClaimedDelivery,
  Delivery,
  DeliveryReport,
  DeliveryState,
  DeliverySummary,
  LaneStreak,
  NewDelivery,
  OwedKey,
  ReportedClaim,
  WebhookHealth,
} from './delivery.ts';

export interface ClaimOptions {
  readonly nowMs: number;
  readonly holder: string;
  readonly leaseMs: number;
  /** Deliveries in all, at most. */
  readonly limit: number;
  /** Deliveries of one lane, at most. */
  readonly laneCapacity: (prefix: string) => number;
}

export interface Claim {
  readonly claimed: readonly ClaimedDelivery[];
  /**
   * When to claim again: now where something was claimed; otherwise when the next delivery is due or a lease ends, lanes
   * left out with something due already, which are full, and continue when one of their attempts ends.
   */
  readonly nextAtMs: number | undefined;
}

/** What an event, an operator or a removed record does to deliveries that are stored. */
export type QueueChange =
  /** Makes an account's held deliveries due, with the attempts they have left, and ends the time (not the count) of their lanes' failure streaks. */
  | { readonly kind: 'resume'; readonly accountId: number }
  /** Ends open deliveries of a lane as failed, outside the streak. */
  | {
      readonly kind: 'end lane';
      readonly prefix: string;
      readonly reason: string;
      /** Only those of events before it. */
      readonly before?: Position;
      /** Only redelivered ones, or only others. */
      readonly redelivered?: boolean;
    }
  /** Forgets a lane's failure streak, once for each time its webhook was enabled, unless it began then or later. */
  | { readonly kind: 'enabled'; readonly prefix: string; readonly atMs: number }
  /** Ends the open deliveries of these transactions (one at least), and those that are enqueued later. */
  | { readonly kind: 'withdraw'; readonly transactionIds: readonly number[] }
  /** Withdraws, and empties the records of all deliveries of the transaction and what receivers said. */
  | { readonly kind: 'erase'; readonly transactionId: number }
  /** Takes the driver out of the records of the transaction's deliveries, and what receivers said. */
  | { readonly kind: 'redact'; readonly transactionId: number };

export interface LateTimes {
  readonly claimsMs: number;
  readonly othersMs: number;
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
export type DeliveryPlace = OwedKey & Pick<NewDelivery, 'createdAtMs'>;

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

/** Of all lanes, or of one. Each is counted up to the limit: that number means so many or more. */
export interface Backlog {
  readonly pending: number;
  /** Of the pending ones, claimed: an attempt is about to be made, or under way. */
  readonly underWay: number;
  /** Of the pending ones, due and not claimed. */
  readonly waiting: number;
  readonly held: number;
  /** Webhooks with a failure streak. */
  readonly failingLanes: number;
  /** When the first of the pending ones is due, or its lease ends. */
  readonly nextDueAtMs: number | undefined;
}

/**
 * The delivery log and the work that is left in it. `next-state.ts` lists which change a delivery takes in which state, and
 * what it sets. What is read may be changed without changing the log. After `close` every call rejects with `STORE_CLOSED`.
 */
export interface DeliveryQueue {
  /** What it is stored in: a copy of the log is one of its tables. */
  readonly tables: Tables;
  /** Notifies of work of another process, and of what a call made due and did not hand out. */
  readonly changed: ChangeSignal;
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
  claim(options: ClaimOptions): Promise<Claim>;
  /**
   * Records outcomes durably, in the order given, each once however often it is reported, and returns the health of each
   * lane whose failure streak changed, as the last of them left it. A report counts while its token is the delivery's
   * last, also when the lease has ended. Two count without it, in the delivery's present cycle: a success, whatever the
   * state; and the failed attempt that was under way when its delivery ended, which is kept outside the streak.
   */
  report(reports: readonly DeliveryReport[]): Promise<ReadonlyMap<string, WebhookHealth>>;
  /** Changes what is meant, in batches: after an interruption the same call does the rest. Says of how many deliveries. */
  change(change: QueueChange, nowMs: number): Promise<number>;
  /**
   * Starts a new cycle of a failed delivery, or with `force` of a delivered one; otherwise says why not (`pending` also of
   * a held one). One of a withdrawn transaction is never made due again, also where it was delivered or failed before.
   */
  redeliver(
    delivery: OwedKey,
    options: { readonly force: boolean; readonly dueAtMs: number },
  ): Promise<'due' | 'not known' | 'withdrawn' | 'delivered' | 'pending'>;
  /**
   * Some of the pending deliveries that a clock that was ahead has dated: claims and others that are due later than these
   * times. Redeliveries are spread over hours: before their first attempt they are none while their lane has something due
   * earlier. Reads an index entry for each lane with something pending.
   */
  late(times: LateTimes, limit: number): Promise<readonly (ReportedClaim & { readonly dueAtMs: number })[]>;
  /** Accounts that have held deliveries. */
  heldAccounts(): Promise<readonly number[]>;
  /**
   * Removes at most `limit` deliveries that ended before a time, oldest first, and as many withdrawals that were made (last) a
   * day before it: nothing is enqueued for what was recorded before the retention. Says how many of both.
   */
  purge(endedBeforeMs: number, limit: number): Promise<number>;
  /** A new log gets a random UUID. */
  logId(): Promise<{ readonly id: string; readonly startedAtMs: number }>;
  find(id: string): Promise<Delivery | undefined>;
  /** Those that are there, in the order given. */
  get(deliveries: readonly OwedKey[]): Promise<readonly Delivery[]>;
  /** Newest first by `createdAtMs`. */
  page(filter: DeliveryFilter, options: PageOptions): Promise<DeliveryPage>;
  /** In any order. */
  ofTransactions(transactionIds: readonly number[]): Promise<readonly DeliverySummary[]>;
  /** Ids of transactions with deliveries, distinct and ascending: at most `limit`, and none only where there is none. */
  transactionsAfter(afterId: number, limit: number): Promise<readonly number[]>;
  health(prefix: string): Promise<WebhookHealth>;
  /** The lanes with a failure streak, the longest first. */
  failingLanes(limit: number): Promise<readonly LaneStreak[]>;
  /** Of the lane, or of all. Its cost does not grow with the log. */
  backlog(at: {
    readonly nowMs: number;
    readonly limit: number;
    readonly prefix?: string | undefined;
  }): Promise<Backlog>;
  close(): Promise<void>;
}

/** What changes nothing. */
export type DeliveryReads = Pick<
  DeliveryQueue,
  'find' | 'get' | 'page' | 'ofTransactions' | 'transactionsAfter' | 'health' | 'failingLanes' | 'backlog'
>;
