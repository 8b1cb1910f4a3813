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
  WebhookHealth,
} from './delivery.ts';

/** A due delivery as it was read. */
export interface DueDelivery extends OwedKey {
  readonly version: number;
}

/** A lane with something due. */
export interface LaneHead {
  readonly prefix: string;
  /** How many deliveries can be leased; infinite if not all were read. */
  readonly count: number;
  /** The due deliveries that were read, the oldest first. */
  readonly due: readonly DueDelivery[];
  /** Claims that last longer than a lease from now. A clock that was ahead has made them. */
  readonly overlong: readonly DueDelivery[];
}

export interface HeadsOptions {
  readonly nowMs: number;
  readonly leaseMs: number;
  /** How far away a due time can be at most. */
  readonly longestWaitMs: number;
}

/** How many deliveries of each lane are leased, by whom and for how long. */
export interface LeaseTerms {
  readonly nowMs: number;
  readonly leaseMs: number;
  readonly holder: string;
  readonly chosen: Pick<ReadonlyMap<string, number>, 'get'>;
}

/** A change of stored deliveries, because of an event, an operator or the retention. */
export type QueueChange =
  /** Ends open deliveries of a lane as failed. The failure streak does not count them. */
  | {
      readonly kind: 'end lane';
      readonly prefix: string;
      readonly reason: string;
      /** Only deliveries of events before this position. */
      readonly before?: Position;
      /** Only redelivered deliveries, or only others. */
      readonly redelivered?: boolean;
    }
  /** Forgets the failures of a lane from before its webhook was enabled. An enabling counts once, and never after a later one. */
  | { readonly kind: 'enabled'; readonly prefix: string; readonly atMs: number }
  /** Ends the open deliveries of these transactions (at least one), and those that are enqueued later. */
  | { readonly kind: 'withdraw'; readonly transactionIds: readonly number[] }
  /** Withdraws the transaction, and removes its record and the receivers' words from all its deliveries. */
  | { readonly kind: 'erase'; readonly transactionId: number }
  /** Removes the driver from the records of the transaction's deliveries, and the receivers' words. */
  | { readonly kind: 'redact'; readonly transactionId: number }
  /**
   * Removes at most `limit` deliveries that ended before the retention, oldest first, and as many withdrawals that are
   * a day older than it: nothing is enqueued for events from before the retention.
   */
  | { readonly kind: 'purge'; readonly retentionMs: number; readonly limit: number };

export interface DeliveryFilter {
  readonly prefix?: string | undefined;
  readonly accountId?: number | undefined;
  readonly transactionIds?: readonly number[] | undefined;
  readonly state?: DeliveryState | undefined;
  /** Only deliveries of these lanes, or only of others. */
  readonly lanes?: { readonly prefixes: ReadonlySet<string>; readonly areExcluded: boolean } | undefined;
  /** Limits of `createdAtMs`, both inclusive. */
  readonly sinceMs?: number | undefined;
  readonly untilMs?: number | undefined;
}

/** A place in the order of `page`. It remains valid when its delivery is removed. */
export type DeliveryPlace = OwedKey & Pick<NewDelivery, 'createdAtMs'>;

export interface PageOptions {
  readonly limit: number;
  readonly after?: DeliveryPlace | undefined;
  /** The most index entries that are read, whether they match or not. Callers that poll need this bound. */
  readonly maxRead?: number | undefined;
}

export interface DeliveryPage {
  readonly deliveries: readonly DeliverySummary[];
  /** The place to continue after; `undefined` at the end of the log. */
  readonly next: DeliveryPlace | undefined;
}

/** The open work of all lanes, or of one. Nothing is counted beyond the limit, so a number equal to it means "at least". */
export interface Backlog {
  readonly pending: number;
  /** Pending and claimed: an attempt is about to be made, or under way. */
  readonly underWay: number;
  /** Pending, due and not claimed. */
  readonly waiting: number;
  /** Webhooks with a failure streak. */
  readonly failingLanes: number;
  /** When the first pending delivery is due, or its lease ends. */
  readonly nextDueAtMs: number | undefined;
}

/** A lane with pending deliveries, and when the first of them is due or its lease ends. */
export interface PendingLane {
  readonly prefix: string;
  readonly dueAtMs: number;
}

/** The delivery of a lane that has been due for longest, and is attempted next. */
export interface DueLane {
  readonly prefix: string;
  readonly transactionId: number;
  readonly dueAtMs: number;
}

/** A place among all lanes. It remains valid when its lane is removed. */
export interface LanePlace {
  readonly accountId: number;
  readonly prefix: string;
}

export interface DueLanes {
  readonly lanes: readonly DueLane[];
  /** True if no other lane has something due. */
  readonly isAll: boolean;
  /** The place to continue after; `undefined` to begin again. */
  readonly next: LanePlace | undefined;
}

/**
 * The delivery log and the work that is left in it. `next-state.ts` says which change a delivery takes in which state.
 * Callers may change what they get without changing the log. After `close` every call rejects with `STORE_CLOSED`.
 */
export interface DeliveryQueue {
  /** The tables of the log, for copying it. */
  readonly tables: Tables;
  /** Notifies of work by other processes, and of deliveries that a call made due and did not hand out. */
  readonly changed: ChangeSignal;
  /**
   * Stores deliveries durably, due at `createdAtMs`, or as `withdrawn` if their transaction was withdrawn. A delivery
   * that exists is left as it is, so an interrupted call is completed by repeating it. New deliveries are leased in the same
   * write as far as they are chosen, so that the first attempt costs no second commit.
   */
  enqueue(deliveries: readonly NewDelivery[], terms?: LeaseTerms): Promise<readonly ClaimedDelivery[]>;
  /**
   * Lanes with something due, the one that waits longest first, and when the next delivery is due or a lease ends. A delivery
   * whose lease ended without a report is due again, with the same attempt number. A due time that is further away than
   * `longestWaitMs` comes from a clock that was ahead, and counts as due. Reads at most 200 deliveries, and one index entry
   * for each lane if more are due.
   */
  heads(options: HeadsOptions): Promise<{
    readonly lanes: readonly LaneHead[];
    readonly nextAtMs: number | undefined;
  }>;
  /**
   * Leases the oldest due deliveries of the chosen lanes that have not changed since, each to one process at a time. An
   * overlong claim of such a lane ends one lease from now.
   */
  lease(lanes: readonly LaneHead[], terms: LeaseTerms): Promise<readonly ClaimedDelivery[]>;
  /**
   * Records outcomes durably, in the order given, each once however often it is reported. Returns the health of each
   * lane whose failure streak changed, as the last of them left it. A report counts while its token is the delivery's
   * last one, even after the lease has ended. Two reports count without it, in the delivery's present cycle: a success,
   * in any state; and the failed attempt that was under way when its delivery ended, which the streak does not count.
   */
  report(reports: readonly DeliveryReport[]): Promise<ReadonlyMap<string, WebhookHealth>>;
  /** Makes a change, in batches. After an interruption the same call does the rest. Returns how many deliveries it changed. */
  change(change: QueueChange, nowMs: number): Promise<number>;
  /**
   * Starts a new cycle of a failed delivery, or with `force` of a delivered one; otherwise returns why not. A delivery of a withdrawn transaction is never made due again, whatever its state.
   */
  redeliver(
    delivery: OwedKey,
    options: { readonly force: boolean; readonly dueAtMs: number },
  ): Promise<'due' | 'not known' | 'withdrawn' | 'delivered' | 'pending'>;
  /** The name of the log: a random UUID. */
  logId(): Promise<{ readonly id: string; readonly startedAtMs: number }>;
  find(id: string): Promise<Delivery | undefined>;
  /** Those of the deliveries that exist, in the order given. */
  get(deliveries: readonly OwedKey[]): Promise<readonly Delivery[]>;
  /** Deliveries by `createdAtMs`, newest first. */
  page(filter: DeliveryFilter, options: PageOptions): Promise<DeliveryPage>;
  /** The lanes with something pending: all, or those of these. */
  pendingLanes(prefixes?: readonly string[]): Promise<readonly PendingLane[]>;
  /** Counts the pending deliveries of these lanes, and those of them that are due and not claimed. */
  countIn(
    prefixes: readonly string[],
    at: { readonly nowMs: number; readonly limit: number },
  ): Promise<{ readonly pending: number; readonly waiting: number }>;
  /** Ids of transactions with deliveries, distinct and ascending: at most `limit`, and none only at the end. */
  transactionsAfter(afterId: number, limit: number): Promise<readonly number[]>;
  health(prefix: string): Promise<WebhookHealth>;
  /** The lanes with a failure streak, the longest first. */
  failingLanes(limit: number): Promise<readonly LaneStreak[]>;
  /**
   * Lanes with something due: all of them while at most `limit` deliveries are due. If there are more, these are the lanes of
   * the oldest `limit` deliveries, those of `limit` lanes after a place, and those that are asked for.
   */
  dueLanes(options: {
    readonly nowMs: number;
    readonly limit: number;
    readonly after?: LanePlace | undefined;
    readonly prefixes?: readonly string[];
  }): Promise<DueLanes>;
  /**
   * Until when the receiver of a lane has asked to wait; `undefined` if it does not ask. The answer is that of a delivery that
   * is attempted again, so nothing is known if it was the last attempt of its delivery.
   */
  askedToWaitUntil(prefix: string, nowMs: number): Promise<number | undefined>;
  /** The backlog of one lane, or of all. Its cost does not grow with the log. */
  backlog(at: {
    readonly nowMs: number;
    readonly limit: number;
    readonly prefix?: string | undefined;
  }): Promise<Backlog>;
  close(): Promise<void>;
}

/** The calls that change nothing. */
export type DeliveryReads = Pick<
  DeliveryQueue,
  | 'find'
  | 'get'
  | 'page'
  | 'pendingLanes'
  | 'countIn'
  | 'transactionsAfter'
  | 'health'
  | 'failingLanes'
  | 'dueLanes'
  | 'askedToWaitUntil'
  | 'backlog'
>;
