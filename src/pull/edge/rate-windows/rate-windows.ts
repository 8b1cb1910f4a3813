/** The length of a window from its first counted request. */
export const WINDOW_SECONDS = 60;

export type RateVerdict =
  | { readonly allowed: true }
  /** The whole seconds until the window ends, at least 1. */
  | { readonly allowed: false; readonly retryAfterSeconds: number };

/**
 * Counts requests in fixed windows, one per id.
 *
 * - `hit` counts one request if fewer than `limit` were counted in the id's window, and otherwise refuses it without
 *   counting. Concurrent hits never let more than `limit` pass.
 * - A different `limit` applies from the next hit on, in the current window.
 */
export interface RateWindows {
  hit(id: string, limit: number): Promise<RateVerdict>;
}
