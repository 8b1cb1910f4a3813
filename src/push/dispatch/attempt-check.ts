import { keyIneligibleReason } from '../../../projections/deliveries.ts';
import type { Directory } from '../../accounts/directory/fold/directory.ts';
import type { DirectoryAccount } from '../../accounts/directory/fold/directory-entry.ts';
import { type AccountKey, activeProfile } from '../../domain/account.ts';
import type { Environment } from '../../domain/account-events.ts';

export type AttemptCheck =
  /** With the URL and the key of this moment. */
  | { readonly kind: 'go'; readonly url: string; readonly key: AccountKey }
  /** The delivery ends as failed; it can be redelivered when the reason no longer holds. */
  | { readonly kind: 'end'; readonly reason: string }
  /** Access checks 4 or 5 fail, or the account can't be read: no attempt until that changes. */
  | { readonly kind: 'hold' };

/** Whether an attempt to a key's webhook may start now, by the directory. */
export function checkAttempt(
  directory: Pick<Directory, 'account'>,
  { prefix, accountId }: { readonly prefix: string; readonly accountId: number },
  { environment, nowMs }: { readonly environment: Environment; readonly nowMs: number },
): AttemptCheck {
  const entry = directory.account(accountId);
  if (entry?.unreadable) return { kind: 'hold' }; // what is known of its keys may be wrong
  const key = entry?.account?.keys.get(prefix);
  if (key === undefined) return { kind: 'end', reason: 'the key is not known' };
  const reason = keyIneligibleReason(key, environment);
  if (reason !== undefined || key.webhook === null) return { kind: 'end', reason: reason ?? 'no webhook' };
  return accessAt(entry, nowMs).open ? { kind: 'go', url: key.webhook.url, key } : { kind: 'hold' };
}

/** Access checks 4 and 5 at one moment; where they fail, when a charging profile that is known now starts. */
export type AccessAt =
  | { readonly open: true }
  | { readonly open: false; readonly opensAtMs: number | undefined };

export function accessAt(entry: DirectoryAccount | undefined, nowMs: number): AccessAt {
  const account = entry?.account;
  if (account === undefined || !account.integrationEnabled) return { open: false, opensAtMs: undefined };
  if (activeProfile(account, nowMs) !== undefined) return { open: true };
  let opensAtMs: number | undefined;
  for (const { fromMs, toMs } of account.profiles.values()) {
    if (fromMs > nowMs && (toMs === null || toMs > fromMs)) opensAtMs = Math.min(opensAtMs ?? fromMs, fromMs);
  }
  return { open: false, opensAtMs };
}
