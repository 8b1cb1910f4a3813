import type { Ciphertext, Environment } from './account-events.ts';

/** What an account is after the events of its stream. */
export interface Account {
  readonly id: number;
  readonly name: string;
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
  /** Outlives the webhook's removal: it is made when a URL is first set and never again. */
  readonly webhookSecret: Ciphertext | null;
}

export interface AccountWebhook {
  readonly url: string;
  readonly setAtMs: number;
  readonly disabled: { readonly reason: string; readonly sinceMs: number } | null;
}
