import type { Ciphertext, Environment } from './account-events.ts';

/** What an account is after the events of its stream. */
export interface Account {
  readonly id: number;
  readonly name: string;
  /** A closed account takes no change but its reopening; that every key and the integration are off are events before. */
  readonly closed: { readonly reason: string; readonly sinceMs: number } | null;
  readonly emails: readonly string[];
  readonly integrationEnabled: boolean;
  /** By profile name. */
  readonly profiles: ReadonlyMap<string, ProfilePeriod>;
  readonly groups: ReadonlyMap<number, { readonly name: string }>;
  readonly corporates: ReadonlyMap<number, { readonly name: string; readonly groupId: number | null }>;
  /** By prefix. */
  readonly keys: ReadonlyMap<string, AccountKey>;
}

/** Active from `fromMs`, inclusive, to `toMs`, exclusive; `null` is open-ended. */
export interface ProfilePeriod {
  readonly fromMs: number;
  readonly toMs: number | null;
}

export interface AccountKey {
  readonly prefix: string;
  readonly environment: Environment;
  readonly label: string | null;
  readonly secretSha256: string;
  readonly active: boolean;
  readonly allowList: readonly string[];
  readonly rateLimit: number;
  readonly driverMobile: boolean;
  readonly webhook: AccountWebhook | null;
  /** Made when a URL is first set, and kept when the webhook is removed. */
  readonly webhookSecret: Ciphertext | null;
}

export interface AccountWebhook {
  readonly url: string;
  readonly setAtMs: number;
  readonly disabled: { readonly reason: string; readonly sinceMs: number } | null;
}

/** The charging profile that gives access at one moment. */
export interface ActiveProfile {
  /** When access ends, milliseconds; `null` when it is open-ended. */
  readonly endsAtMs: number | null;
}

/**
 * The account's access by charging profile at `nowMs` (check 5). Where several profiles are active, access ends with
 * the last of them. `undefined`: no access.
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
