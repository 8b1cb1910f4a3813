import type { Account } from './account.ts';

/** The charging profile that gives access at one moment. */
export interface ActiveProfile {
  /** When access ends, milliseconds; `null` when it is open-ended. */
  readonly endsAtMs: number | null;
}

/**
 * The account's access by charging profile at `nowMs` (check 5): a profile counts from its start, inclusive,
 * to its end, exclusive. Where several count, access ends with the last of them. `undefined`: no access.
 */
export function activeProfile(account: Account, nowMs: number): ActiveProfile | undefined {
  let latestEndMs: number | undefined;
  for (const { fromMs, toMs } of account.profiles.values()) {
    if (nowMs < fromMs) continue;
    if (toMs === null) return { endsAtMs: null };
    if (nowMs < toMs) latestEndMs = Math.max(latestEndMs ?? toMs, toMs);
  }
  return latestEndMs === undefined ? undefined : { endsAtMs: latestEndMs };
}
