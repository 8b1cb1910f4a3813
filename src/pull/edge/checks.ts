import { hash, timingSafeEqual } from 'node:crypto';
import type { Caller } from '../../accounts/caller.ts';
import { type IpAddress, isAllowed } from './addresses.ts';
import type { RateWindows } from './rate-windows/rate-windows.ts';

/** How many wrong keys with a known prefix are counted; beyond that the oldest is forgotten. */
export const MAX_UNPROVEN_KEYS = 10_000;

export type EdgeVerdict =
  | { readonly kind: 'pass' }
  | { readonly kind: 'address refused' }
  | { readonly kind: 'limit reached'; readonly retryAfterSeconds: number }
  /** The account's events can't be read, so its allow-list can't be trusted. */
  | { readonly kind: 'unreadable' };

export interface EdgeWindows {
  readonly keys: RateWindows;
  /** For known prefixes with a wrong secret: separate and bounded, so that a flood of them affects no real key. */
  readonly unproven: RateWindows;
}

/**
 * Checks 1 and 2 of the acceptance order, unless a gateway in front makes them: allow-list and rate limit of the key with
 * the presented prefix, switched off or not. An unknown key passes; check 3 refuses it.
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

/** Whether a request carries a token of the gateway, which proves that the gateway made checks 1 and 2. */
export type EdgeProof = (presented: string | undefined) => boolean;

/**
 * Several tokens may be valid, so that one can be replaced. Digests are compared, always all of them, so that the time
 * taken says nothing about a token.
 */
export function createEdgeProof(tokens: readonly string[]): EdgeProof {
  const digests = tokens.map(digest);
  return (presented) => {
    if (presented === undefined) return false;
    const given = digest(presented);
    return digests.map((valid) => timingSafeEqual(valid, given)).includes(true);
  };
}

function digest(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}
