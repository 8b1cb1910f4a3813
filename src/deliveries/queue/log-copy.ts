import type { Delivery, WebhookHealth } from './delivery-queue.ts';

/** A delivery as it stands in a log, whole. Its lease is not part of it: a copy belongs to nobody. */
export interface StoredDelivery extends Delivery {
  readonly endedAtMs: number | null;
}

/** The run of one lane. */
export interface StoredStreak {
  readonly prefix: string;
  readonly health: WebhookHealth;
}

/**
 * A delivery log as `fuel store copy` reads and writes it; nobody delivers from either log meanwhile.
 *
 * - `deliveries`, `withdrawals` and `streaks` hand out everything in batches, each in a stable order; `deliveries`
 *   by id, behind `after` where that is given, so that a copy can go on.
 * - `adopt` gives an empty log the name and start of another. Rejects with `REFUSED` where the log has another
 *   name already and holds deliveries; adopting the name that it has changes nothing.
 * - `store`, `storeWithdrawals` and `storeStreaks` put things there as they are, in the place of what stands under
 *   the same id: storing twice changes nothing. What a lease held is due at the delivery's own due time.
 */
export interface DeliveryLogCopy {
  logId(): Promise<{ readonly id: string; readonly startedAtMs: number }>;
  adopt(log: { readonly id: string; readonly startedAtMs: number }): Promise<void>;
  deliveries(options?: { readonly after?: string | undefined }): AsyncIterable<readonly StoredDelivery[]>;
  withdrawals(): AsyncIterable<readonly number[]>;
  streaks(): AsyncIterable<readonly StoredStreak[]>;
  store(deliveries: readonly StoredDelivery[]): Promise<void>;
  storeWithdrawals(transactionIds: readonly number[]): Promise<void>;
  storeStreaks(streaks: readonly StoredStreak[]): Promise<void>;
}
