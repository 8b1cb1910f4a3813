import type { Ciphertext, Environment } from './account-events.ts';

/** An account as the events of its stream make it. */
export interface Account {
  readonly id: number;
  readonly name: string;
  /** A closed account can only be reopened. Earlier events have switched off its integration and all of its keys. */
  readonly closed: { readonly reason: string; readonly sinceMs: number } | null;
  readonly emails: readonly string[];
  readonly integration: { readonly enabled: boolean; readonly sinceMs: number };
  /** The periods of its charging profiles by profile name. */
  readonly profiles: ReadonlyMap<string, ProfilePeriod>;
  /** When a change of a profile last left the account without a current one, or gave it one again. */
  readonly profileChangedAtMs: number | null;
  readonly groups: ReadonlyMap<number, { readonly name: string }>;
  readonly corporates: ReadonlyMap<number, { readonly name: string; readonly groupId: number | null }>;
  /** The keys by prefix. */
  readonly keys: ReadonlyMap<string, AccountKey>;
}

/** A profile is active from `fromMs`, inclusive, to `toMs`, exclusive; `null` means open-ended. */
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
  /** Created when a URL is first set, and kept when the webhook is removed. */
  readonly webhookSecret: Ciphertext | null;
}

export interface AccountWebhook {
  readonly url: string;
  readonly setAtMs: number;
  readonly disabled: { readonly reason: string; readonly sinceMs: number } | null;
  readonly ratePerSecond: number | null; // the limit of deliveries that the operator has set
}

/** The part of an account that checks 4 and 5 need. */
export type AccessTerms = Pick<Account, 'integration' | 'profiles' | 'profileChangedAtMs'>;

/** An account's charging profiles at one moment. */
export type ProfileAccess =
  /**
   * `sinceMs` is no earlier than the last time without a current profile. Access ends with the last one; `null` means
   * open-ended.
   */
  | { readonly active: true; readonly sinceMs: number; readonly endsAtMs: number | null }
  /**
   * `sinceMs` is when the last profile ended, or a change left none current; `startsAtMs` is when the next one begins.
   */
  | { readonly active: false; readonly sinceMs: number | undefined; readonly startsAtMs: number | undefined };

/** Check 5: which charging profiles are current, and for how long. */
export function profileAccess(account: Omit<AccessTerms, 'integration'>, nowMs: number): ProfileAccess {
  const current = { sinceMs: nowMs, endsAtMs: Number.NEGATIVE_INFINITY };
  let endedAtMs = account.profileChangedAtMs ?? undefined;
  let startsAtMs: number | undefined;
  for (const { fromMs, toMs } of account.profiles.values()) {
    const endMs = toMs ?? Number.POSITIVE_INFINITY;
    if (endMs <= nowMs) endedAtMs = Math.max(endedAtMs ?? endMs, endMs);
    else if (fromMs <= nowMs) {
      current.sinceMs = Math.min(current.sinceMs, fromMs);
      current.endsAtMs = Math.max(current.endsAtMs, endMs);
    } else if (fromMs < endMs) startsAtMs = Math.min(startsAtMs ?? fromMs, fromMs);
  }
  const { endsAtMs } = current;
  if (endsAtMs > nowMs) {
    const sinceMs = Math.max(
      unbrokenSince(account.profiles, current.sinceMs),
      account.profileChangedAtMs ?? 0,
    );
    return { active: true, sinceMs, endsAtMs: Number.isFinite(endsAtMs) ? endsAtMs : null };
  }
  return { active: false, sinceMs: endedAtMs, startsAtMs };
}

/** Returns since when one of the profiles has been current at every moment up to `sinceMs`. */
function unbrokenSince(profiles: Account['profiles'], sinceMs: number): number {
  for (const { fromMs, toMs } of profiles.values())
    if (fromMs < sinceMs && toMs !== null && toMs >= sinceMs) return unbrokenSince(profiles, fromMs);
  return sinceMs;
}

/** Says if requests of an account are answered, or with which code they are refused. */
export type Access =
  /** `sinceMs` is no earlier than the last time without access. */
  | { readonly open: true; readonly sinceMs: number; readonly endsAtMs: number | null }
  | {
      readonly open: false;
      readonly code: 'SERVICE_UNAVAILABLE' | 'API_INTEGRATION_NOT_ENABLED' | 'NO_ACTIVE_CHARGING_PROFILE';
      /** When access ended, if that is known. */
      readonly sinceMs?: number;
      /** The time at which the next charging profile gives access, if one is set. */
      readonly opensAtMs?: number | undefined;
    };

/** Checks 4 and 5, in that order, at one moment. The account is `undefined` if it can't be read. */
export function accessOf(account: AccessTerms | undefined, nowMs: number): Access {
  if (account === undefined) return { open: false, code: 'SERVICE_UNAVAILABLE' };
  const { enabled, sinceMs } = account.integration;
  if (!enabled) return { open: false, code: 'API_INTEGRATION_NOT_ENABLED', sinceMs };
  const profile = profileAccess(account, nowMs);
  if (profile.active)
    return { open: true, sinceMs: Math.max(sinceMs, profile.sinceMs), endsAtMs: profile.endsAtMs };
  return {
    open: false,
    code: 'NO_ACTIVE_CHARGING_PROFILE',
    sinceMs: Math.max(sinceMs, profile.sinceMs ?? sinceMs),
    opensAtMs: profile.startsAtMs,
  };
}
