import type {
  Attempt,
  Delivery,
  DeliveryState,
  LaneStreak,
  LogName,
  StoredDelivery,
  WebhookHealth,
} from './delivery.ts';

/** A delivery without its record and attempts, as lists show it. */
export type DeliverySummary = Omit<Delivery, 'record' | 'attempts'>;

/** What a comparison of the log with the events needs of a delivery. */
export type LoggedDelivery = Pick<
  Delivery,
  'id' | 'prefix' | 'accountId' | 'transactionId' | 'state' | 'cycle' | 'recordedAtMs'
>;

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
  /** All deliveries of the next transactions by id, some MiB or those of one transaction; none only at the end. */
  storedAfter(transactionId: number): Promise<readonly StoredDelivery[]>;
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
