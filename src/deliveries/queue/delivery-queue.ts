import { randomUUID } from 'node:crypto';
import type { RenderedRecord } from '../../../projections/transactions.ts';
import type { Position } from '../../event-store/event-store.ts';

/**
 * Attempts that are kept of one delivery: it can be redelivered without end, and must not grow with that. An attempt
 * takes 60 KiB at most, so that all of them fit into a document of MongoDB (16 MiB) several times.
 */
export const MAX_ATTEMPTS_KEPT = 50;

export type DeliveryState = 'pending' | 'held' | 'delivered' | 'failed' | 'withdrawn';

/** What is owed to one key: made once, never changed. */
export interface NewDelivery {
  /** UUIDv5 of `<key prefix>/<transaction id>`; random for a test. */
  readonly id: string;
  /** The lane: deliveries of one key's webhook share its limits and its health. */
  readonly prefix: string;
  readonly accountId: number;
  readonly transactionId: number;
  readonly type: 'transaction.confirmed' | 'transaction.external';
  readonly createdAtMs: number;
  /** Of the transaction's event, by which agreement is proven. */
  readonly position: Position;
  readonly recordedAtMs: number;
  /** Frozen: the mobile number is in it or not as the key stood when the event was recorded. */
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
  /** When the next attempt is due, or the lease of the one under way ends; `null` unless pending. */
  readonly dueAtMs: number | null;
  /** The newest `MAX_ATTEMPTS_KEPT`, in order: all of the present cycle, and of the former ones what fits. */
  readonly attempts: readonly Attempt[];
}

/** A delivery without its record and attempts, as lists show it. */
export type DeliverySummary = Omit<Delivery, 'record' | 'attempts'>;

export type FailureKind = 'dns' | 'forbidden' | 'connect' | 'tls' | 'timeout' | 'protocol' | 'status' | 'cut';

export interface ReceiverAnswer {
  readonly status: number;
  /** The first 8 KiB, names included. */
  readonly headers: Readonly<Record<string, string>>;
  /** The first 4 KiB as text. */
  readonly body: string;
}

/** What one attempt came to. A status outside 2xx is a failure with its answer. */
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

/** A delivery in the hands of one dispatcher until its lease ends. */
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
      /** `null` where it ended without a last attempt: the key is off, the webhook removed or disabled. */
      readonly attempt: Attempt | null;
      readonly reason: string;
    }
  /** Access checks 4 or 5 fail: no attempt was made, and none is until `resume`. */
  | { readonly kind: 'held'; readonly id: string; readonly leaseToken: string }
  /** Given back untouched, due at once: the dispatcher stops. */
  | { readonly kind: 'released'; readonly id: string; readonly leaseToken: string };

/** The run of failed deliveries of one webhook since its last success. */
export interface WebhookHealth {
  readonly failedInARow: number;
  /** The first failure of the run; `null` while there is none. A hold ends the run in time, not the count. */
  readonly failingSinceMs: number | null;
  /** Of the run's failed deliveries, newest first, at most 5: `503`, `timeout: …`. */
  readonly lastAnswers: readonly string[];
}

export interface ClaimOptions {
  readonly nowMs: number;
  readonly holder: string;
  readonly leaseMs: number;
  /** Most deliveries in all. */
  readonly limit: number;
  /** Most for one lane, which may be less for some: in flight already, or a receiver that fails. */
  readonly laneCapacity: (prefix: string) => number;
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

/** Tells that there may be new work. `notify` is called on the listener's own thread. */
export interface WorkSignal {
  add(listener: WorkListener): void;
  remove(listener: WorkListener): void;
}

export interface WorkListener {
  notify(): void;
}

/**
 * The delivery log and the work that is left in it.
 *
 * - `enqueue` stores deliveries, durably; one whose id is there already changes nothing, so that what an
 *   interruption left of a batch is stored by the same call made again. They are due at `createdAtMs`. One whose
 *   transaction was withdrawn is stored as `withdrawn`. With `claimFor` those that are new are claimed in the same
 *   step (at most the lane's capacity): the first attempt costs no second commit.
 * - `claim` hands out due deliveries, each to one dispatcher at a time, oldest due first within a lane, lanes
 *   that wait longest first; a lane never takes more than its capacity, so that a dead receiver's backlog does
 *   not stand before others'. A claim whose lease ended without a report is due again, same attempt number. It
 *   reads one index entry for each lane with something due, and no delivery but those it hands out.
 * - `report` records outcomes, durably, in the order given, each once however often it is reported, and returns
 *   the health of each lane whose run changed, as it stands after the last of them. It counts while the claim's
 *   token is the delivery's last, also when its lease has ended and nobody else took it. What another token holds,
 *   or has ended meanwhile, is left as it is, with two exceptions in the delivery's present cycle: a success is
 *   recorded as delivered, also of a failed or withdrawn one; and the failed attempt that was under way when the
 *   delivery ended is kept with it, outside the run. `delivered` ends the lane's run; `failed` with an attempt counts
 *   one more. A delivery keeps its newest `MAX_ATTEMPTS_KEPT` attempts; `attemptsInCycle` counts all of the cycle.
 * - `resume` makes an account's held deliveries due at `nowMs`, attempts left as they were, and ends the time
 *   (not the count) of their lanes' runs. Says how many. In batches: what an interruption leaves is still held.
 * - `endLane` ends everything pending or held of a lane as failed with the reason; not counted in the run. In
 *   batches, as `resume`. Says how many.
 * - `withdraw` ends what is pending or held of a transaction, and whatever is enqueued of it from then on.
 *   `erase` does that and empties the records of all its deliveries.
 * - `redeliver` starts a new cycle of a failed delivery, or with `force` of a delivered one, due at `dueAtMs`;
 *   says why not otherwise (`pending` also for a held one). One of a withdrawn transaction is never made due
 *   again, also where it was delivered or failed before.
 * - `nextDueAtMs` is when the next delivery falls due (or a lease ends), `undefined` while there is none. With
 *   `laterThanMs` lanes that have something due by then are left out: what to wake for after a claim at that
 *   time, since a lane that is full is served when one of its own attempts ends.
 * - `resetHealth` forgets a lane's run (enable).
 * - `list` is newest first by `createdAtMs`, then `id`; `after` goes on behind a delivery's id, and rejects with
 *   `REFUSED` where there is no such delivery.
 * - `purge` removes at most `limit` deliveries that ended before `endedBeforeMs`, oldest first, says how many.
 *   What was withdrawn stays known.
 * - `logId` names the log; a new one gets a random UUID.
 * - `changed` rings when there may be new work: by another process, or by a call that made something due that
 *   it did not hand to its caller.
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
  list(
    filter: DeliveryFilter,
    page: { readonly limit: number; readonly after?: string | undefined },
  ): Promise<readonly DeliverySummary[]>;
  countByState(filter: DeliveryFilter): Promise<Readonly<Record<DeliveryState, number>>>;
  purge(endedBeforeMs: number, limit: number): Promise<number>;
  close(): Promise<void>;
}
