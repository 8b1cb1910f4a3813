import type { Caller } from '../accounts/caller.ts';
import { isAllowed } from './allow-list.ts';
import type { IpAddress } from './client-address.ts';
import type { RateWindows } from './rate-windows/rate-windows.ts';

/** How many made-up keys are counted at once, each with a known prefix; the oldest is forgotten beyond that. */
export const MAX_UNPROVEN_KEYS = 10_000;

export type EdgeVerdict =
  | { readonly kind: 'pass' }
  | { readonly kind: 'address refused' }
  | { readonly kind: 'limit reached'; readonly retryAfterSeconds: number }
  /** The account's events can't be read, so its allow-list can't be trusted. */
  | { readonly kind: 'unreadable' };

export interface EdgeWindows {
  readonly keys: RateWindows;
  /** For known prefixes with a wrong secret; apart and bounded, so that no flood of them touches a real key. */
  readonly unproven: RateWindows;
}

/**
 * Checks 1 and 2 of the acceptance order, where no gateway in front does them: allow-list and rate limit of the
 * key with the presented prefix, switched off or not. Who presents no known key passes on, to be refused by
 * check 3.
 */
export async function checkEdge(
  caller: Caller,
  address: IpAddress | undefined,
  windows: EdgeWindows,
): Promise<EdgeVerdict> {
  if (caller.known === undefined) return { kind: 'pass' };
  const { key, entry } = caller.known;
  if (entry.unreadable !== null) return { kind: 'unreadable' };
  if (key.environment === 'production' && !isAllowed(key.allowList, address)) {
    return { kind: 'address refused' };
  }
  const verdict = await (caller.proven ? windows.keys : windows.unproven).hit(
    caller.countingId,
    key.rateLimit,
  );
  return verdict.allowed
    ? { kind: 'pass' }
    : { kind: 'limit reached', retryAfterSeconds: verdict.retryAfterSeconds };
}
