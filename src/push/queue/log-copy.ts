import type { Delivery, WebhookHealth } from './delivery-queue.ts';

/** A delivery with everything that a log holds of it, except its claim. */
export interface StoredDelivery extends Delivery {
  readonly endedAtMs: number | null;
}

/** The failure streak of one lane. */
export interface StoredStreak {
  readonly prefix: string;
  readonly health: WebhookHealth;
}

/**
 * A delivery log as `fuel store copy` reads and writes it; nothing is delivered from either log meanwhile.
 *
 * - `deliveries`, `withdrawals` and `streaks` return everything in batches, each in a stable order; `deliveries` by
 *   id, after `after` where given, so that a copy can continue.
 * - `adopt` gives an empty log the name and start of another. Rejects with `REFUSED` where the log has another name
 *   and holds deliveries; adopting the name that it has changes nothing.
 * - `store`, `storeWithdrawals` and `storeStreaks` store things unchanged and replace those with the same id: storing
 *   twice changes nothing. A claimed delivery becomes due at its own due time.
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
