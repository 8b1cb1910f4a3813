import type {
  DeliveryFilter,
  DeliveryPage,
  DeliveryPlace,
  DeliverySummary,
  WebhookHealth,
} from './delivery-queue.ts';

export interface BoundedPageOptions extends DeliveryPage {
  /** Entries of the index that are read at most. */
  readonly maxRead: number;
}

export interface BoundedPage {
  readonly deliveries: readonly DeliverySummary[];
  /** What the next page continues after; `undefined` at the end of the log. */
  readonly next: DeliveryPlace | undefined;
}

export interface LaneStreak extends WebhookHealth {
  readonly prefix: string;
}

/** An attempt without what its receiver wrote. */
export interface LaneAttempt {
  readonly deliveryId: string;
  readonly startedAtMs: number;
  readonly durationMs: number;
  readonly ok: boolean;
  /** The receiver's status, or the kind of the failure where there was no answer. */
  readonly answer: string;
}

/** Each is counted up to the limit: that number means so many or more. */
export interface LaneBacklog {
  readonly pending: number;
  readonly held: number;
  /** When the first of the pending ones is due, or its lease ends. */
  readonly nextDueAtMs: number | undefined;
}

/**
 * Reads of the delivery log whose cost does not grow with it, for whoever looks at it again and again while the service
 * runs.
 *
 * - `page` is `list`, but ends after `maxRead` entries also where fewer than `limit` were found; `next` continues there.
 * - `failingLanes` are the lanes with a failure streak, the longest first.
 * - `attempts` are those of the newest deliveries of a lane that were attempted, oldest attempt first: of at most
 *   `deliveries`, looked for among the newest `maxRead` of the lane.
 */
export interface BoundedReads {
  page(filter: DeliveryFilter, options: BoundedPageOptions): Promise<BoundedPage>;
  failingLanes(limit: number): Promise<readonly LaneStreak[]>;
  attempts(
    prefix: string,
    limits: { readonly deliveries: number; readonly maxRead: number },
  ): Promise<readonly LaneAttempt[]>;
  laneBacklog(prefix: string, limit: number): Promise<LaneBacklog>;
}
