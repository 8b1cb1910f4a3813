import type { Position } from '../../event-store/recorded-event.ts';
import type {
  ClaimedDelivery,
  DeliveryReport,
  LaneStreak,
  LogName,
  NewDelivery,
  StoredDelivery,
  WebhookHealth,
} from './delivery.ts';
import type { DeliveryReads, LaneReads } from './delivery-reads.ts';

export interface ClaimOptions {
  readonly nowMs: number;
  readonly holder: string;
  readonly leaseMs: number;
  /** Deliveries in all, at most. */
  readonly limit: number;
  /** Deliveries of one lane, at most. */
  readonly laneCapacity: (prefix: string) => number;
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

/** Which open deliveries of a lane: all, or only those of events before a position, or only redelivered ones, or others. */
export interface OpenOfLane {
  readonly before?: Position;
  readonly redelivered?: boolean;
}

/** What an operator, an event or the retention does to what is stored. */
export interface DeliveryControl {
  /** Ends the open deliveries of these transactions (one at least), and those that are enqueued later. */
  withdraw(transactionIds: readonly number[], nowMs: number): Promise<void>;
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

/** The delivery log and the work that is left in it. After `close` every call rejects with `STORE_CLOSED`. */
export interface DeliveryQueue extends DeliveryWork, DeliveryControl, DeliveryReads, LaneReads {
  close(): Promise<void>;
}
