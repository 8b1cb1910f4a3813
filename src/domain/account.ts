import type { Ciphertext, Environment } from './account-events.ts';

/** What an account is after the events of its stream. */
export interface Account {
  readonly id: number;
  readonly name: string;
  /** A closed account takes no change but its reopening; that every key and the integration are off are events before. */
  readonly closed: { readonly reason: string; readonly sinceMs: number } | null;
  readonly emails: readonly string[];
  readonly integration: { readonly enabled: boolean; readonly sinceMs: number };
  /** By profile name. */
  readonly profiles: ReadonlyMap<string, ProfilePeriod>;
  /** When a profile was last set so that none was current any more. */
  readonly noProfileSinceMs: number | null;
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

/** An account's charging profiles at one moment. */
export type ProfileAccess =
  /** Since the first of the profiles that are current began. Access ends with the last of them; `null` is open-ended. */
  | { readonly active: true; readonly sinceMs: number; readonly endsAtMs: number | null }
  /** Since the last one ended, or was taken away; `undefined` where there was none. `startsAtMs`: of the next one. */
  | { readonly active: false; readonly sinceMs: number | undefined; readonly startsAtMs: number | undefined };

/** Check 5. A profile is active from `fromMs`, inclusive, to `toMs`, exclusive. */
export function profileAccess(account: Account, nowMs: number): ProfileAccess {
  const current = { sinceMs: nowMs, endsAtMs: Number.NEGATIVE_INFINITY };
  let endedAtMs = account.noProfileSinceMs ?? undefined;
  let startsAtMs: number | undefined;
  for (const { fromMs, toMs } of account.profiles.values()) {
    const endMs = toMs ?? Number.POSITIVE_INFINITY;
    if (endMs <= nowMs) endedAtMs = Math.max(endedAtMs ?? endMs, endMs);
    else if (fromMs <= nowMs) {
      current.sinceMs = Math.min(current.sinceMs, fromMs);
      current.endsAtMs = Math.max(current.endsAtMs, endMs);
    } else if (fromMs < endMs) startsAtMs = Math.min(startsAtMs ?? fromMs, fromMs);
  }
  const { sinceMs, endsAtMs } = current;
  if (endsAtMs > nowMs)
    return { active: true, sinceMs, endsAtMs: Number.isFinite(endsAtMs) ? endsAtMs : null };
  return { active: false, sinceMs: endedAtMs, startsAtMs };
}

/** Whether requests of an account are answered, or with which code they are refused. */
export type Access =
  | { readonly open: true; readonly account: Account; readonly endsAtMs: number | null }
  | {
      readonly open: false;
      readonly code: 'SERVICE_UNAVAILABLE' | 'API_INTEGRATION_NOT_ENABLED' | 'NO_ACTIVE_CHARGING_PROFILE';
      /** `undefined` where it is not known. */
      readonly sinceMs?: number;
      /** When a charging profile that is known now gives access. */
      readonly opensAtMs?: number | undefined;
    };

/** Checks 4 and 5 of the acceptance order, in that order, at one moment. `undefined`: an account that can't be read. */
export function accessOf(account: Account | undefined, nowMs: number): Access {
  if (account === undefined) return { open: false, code: 'SERVICE_UNAVAILABLE' };
  const { enabled, sinceMs } = account.integration;
  if (!enabled) return { open: false, code: 'API_INTEGRATION_NOT_ENABLED', sinceMs };
  const profile = profileAccess(account, nowMs);
  if (profile.active) return { open: true, account, endsAtMs: profile.endsAtMs };
  return {
    ...{ open: false, code: 'NO_ACTIVE_CHARGING_PROFILE' },
    sinceMs: Math.max(sinceMs, profile.sinceMs ?? sinceMs),
    opensAtMs: profile.startsAtMs,
  };
}
