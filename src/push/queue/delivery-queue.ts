import { randomUUID } from 'node:crypto';
import type { RenderedRecord } from '../../../projections/transactions.ts';
import type { Position } from '../../event-store/event-store.ts';

/**
 * Attempts that are kept of one delivery: it can be redelivered without limit, and must not grow with that. An attempt
 * takes 60 KiB at most, so that all of them fit into a document of MongoDB (16 MiB) several times.
 */
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
  readonly type: 'transaction.confirmed' | 'transaction.external';
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
  'id' | 'prefix' | 'accountId' | 'transactionId' | 'state' | 'recordedAtMs'
>;

export type FailureKind = 'dns' | 'forbidden' | 'connect' | 'tls' | 'timeout' | 'protocol' | 'status' | 'cut';

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

/** A token that no other claim has; it names the holder for whoever reads the log. */
export function newLeaseToken(holder: string): string {
  return `${holder}/${randomUUID()}`;
}

/** What is recorded of a claimed delivery. */
export type DeliveryReport =
  | {
      readonly kind: 'delivered';
      readonly id: string;
      readonly leaseToken: string;
      readonly attempt: Attempt;
    }
  | {
      readonly kind: 'retry';
      readonly id: string;
      readonly leaseToken: string;
      readonly attempt: Attempt;
      readonly dueAtMs: number;
    }
  | {
      readonly kind: 'failed';
      readonly id: string;
      readonly leaseToken: string;
      /** `null` where it ends without an attempt: the key is off, the webhook removed or disabled. */
      readonly attempt: Attempt | null;
      readonly reason: string;
    }
  /** Access checks 4 or 5 fail: no attempt was made, and none is until `resume`. */
  | { readonly kind: 'held'; readonly id: string; readonly leaseToken: string }
  /** Given back unchanged, due at once: the dispatcher stops. */
  | { readonly kind: 'released'; readonly id: string; readonly leaseToken: string };

/** The failure streak of one webhook: its failed deliveries since the last success. */
export interface WebhookHealth {
  readonly failedInARow: number;
  /** The first failure of the streak; `null` where there is none, or a hold has ended the time but not the count. */
  readonly failingSinceMs: number | null;
  /** Of the streak's failed deliveries, newest first, at most 5: `503`, `timeout: …`. */
  readonly lastAnswers: readonly string[];
}

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

/** A place in the order of `list`: it stays one when its delivery has been removed. */
export type DeliveryPlace = Pick<Delivery, 'createdAtMs' | 'id'>;

export interface DeliveryPage {
  readonly limit: number;
  readonly after?: DeliveryPlace | undefined;
}

/** Notifies of possible new work. `notify` is called on the listener's own thread. */
export interface WorkSignal {
  add(listener: WorkListener): void;
  remove(listener: WorkListener): void;
}

export interface WorkListener {
  notify(): void;
}

/**
 * The delivery log and the work that is left in it. `next-state.ts` lists which change a delivery takes in which
 * state, and what it sets.
 *
 * - `enqueue` stores deliveries durably, due at `createdAtMs`; one whose id exists changes nothing, so that the same
 *   call, repeated after an interruption, stores the rest. One whose transaction was withdrawn is stored as
 *   `withdrawn`. With `claimFor` new ones are claimed in the same step, up to the lane's capacity: the first attempt
 *   costs no second commit.
 * - `claim` hands out due deliveries, each to one dispatcher at a time, oldest due first within a lane, and the lanes
 *   that wait longest first; a lane never takes more than its capacity, so that a dead receiver's backlog does not
 *   delay others. A claim whose lease ended without a report is due again, with the same attempt number. It reads one
 *   index entry for each lane with something due, and only the deliveries that it hands out.
 * - `report` records outcomes durably, in the order given, each once however often it is reported, and returns the
 *   health of each lane whose failure streak changed, as the last of them left it. A report counts while its token
 *   is the delivery's last, also when the lease has ended. Two reports count without it, in the delivery's present
 *   cycle: a success, whatever the state; and the failed attempt that was under way when its delivery ended, which
 *   is kept outside the streak. A delivery keeps its newest `MAX_ATTEMPTS_KEPT` attempts; `attemptsInCycle` counts
 *   all of the cycle.
 * - `resume` makes an account's held deliveries due at `nowMs`, with the attempts they have left, and ends the time
 *   (not the count) of their lanes' failure streaks. Returns how many. In batches: after an interruption the rest is
 *   still held.
 * - `endLane` ends all open deliveries of a lane as failed with the reason, outside the streak. In batches, as
 *   `resume`. Returns how many.
 * - `withdraw` ends the open deliveries of a transaction, and those that are enqueued later. `erase` does that and
 *   empties the records of all its deliveries.
 * - `redeliver` starts a new cycle of a failed delivery, or with `force` of a delivered one, due at `dueAtMs`;
 *   otherwise it returns why not (`pending` also for a held one). One of a withdrawn transaction is never made due
 *   again, also where it was delivered or failed before.
 * - `nextDueAtMs` is when the next delivery is due (or a lease ends), `undefined` while there is none. With
 *   `laterThanMs` lanes that have something due by then are left out: after a claim at that time they are full, and
 *   continue when one of their own attempts ends.
 * - `resetHealth` forgets a lane's failure streak (enable).
 * - `list` is newest first by `createdAtMs`, then `id`; `after` continues after the place of a delivery.
 * - `backlog` counts what is open, without reading more than `limit` index entries of each state: metrics read it often.
 * - `ofTransactions` returns the deliveries of these transactions, in any order.
 * - `transactionsAfter` returns ids of transactions that have deliveries, above `afterId`, distinct and ascending: at
 *   most `limit`, and none only where there is none.
 * - `purge` removes at most `limit` deliveries that ended before `endedBeforeMs`, oldest first, and returns how many.
 * - `purgeWithdrawals` forgets at most `limit` transactions that were withdrawn (or erased) before a time, oldest first,
 *   and returns how many. Their time is that of the last call that withdrew them.
 * - `logId` names the log; a new one gets a random UUID.
 * - `changed` notifies of possible new work: by another process, or by a call that made something due and did not
 *   hand it out.
 * - After `close` every call rejects with `STORE_CLOSED`.
 */
export interface DeliveryQueue {
  readonly changed: WorkSignal;
  logId(): Promise<{ readonly id: string; readonly startedAtMs: number }>;
  enqueue(
    deliveries: readonly NewDelivery[],
    claimFor?: Omit<ClaimOptions, 'limit'>,
  ): Promise<readonly ClaimedDelivery[]>;
  claim(options: ClaimOptions): Promise<readonly ClaimedDelivery[]>;
  report(reports: readonly DeliveryReport[]): Promise<ReadonlyMap<string, WebhookHealth>>;
  resume(accountId: number, nowMs: number): Promise<number>;
  endLane(prefix: string, reason: string, nowMs: number): Promise<number>;
  withdraw(transactionId: number, nowMs: number): Promise<void>;
  erase(transactionId: number, nowMs: number): Promise<void>;
  redeliver(
    id: string,
    options: { readonly force: boolean; readonly dueAtMs: number },
  ): Promise<'due' | 'not known' | 'withdrawn' | 'delivered' | 'pending'>;
  nextDueAtMs(laterThanMs?: number): Promise<number | undefined>;
  health(prefix: string): Promise<WebhookHealth>;
  resetHealth(prefix: string): Promise<void>;
  /** Accounts that have held deliveries. */
  heldAccounts(): Promise<readonly number[]>;
  find(id: string): Promise<Delivery | undefined>;
  list(filter: DeliveryFilter, page: DeliveryPage): Promise<readonly DeliverySummary[]>;
  countByState(filter: DeliveryFilter): Promise<Readonly<Record<DeliveryState, number>>>;
  backlog(limit: number): Promise<Backlog>;
  ofTransactions(transactionIds: readonly number[]): Promise<readonly LoggedDelivery[]>;
  transactionsAfter(afterId: number, limit: number): Promise<readonly number[]>;
  purge(endedBeforeMs: number, limit: number): Promise<number>;
  purgeWithdrawals(madeBeforeMs: number, limit: number): Promise<number>;
  close(): Promise<void>;
}
