import { loadAccount } from '../../accounts/directory/load-directory.ts';
import type { AccountKey } from '../../domain/account.ts';
import type { Environment } from '../../domain/account-events.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { type NoAccess, noAccess } from '../answers/access.ts';

/** Whether a key could read its account's transactions at a time. */
export interface KeyAccess {
  readonly key: string;
  readonly can_read: boolean;
  /** Why not. */
  readonly reason: string | null;
  /** Whether the key showed drivers' mobile numbers. */
  readonly mobile_number: boolean;
}

/** Who could read an account's transactions at a time, by access checks 3 to 5. */
export interface Access {
  /** Why nobody could; `null` where the account was open. */
  readonly noAccess: NoAccess | null;
  /** The keys that the account had; `null` where it can't be read. */
  readonly keys: readonly KeyAccess[] | null;
}

export async function accessAt(
  store: Pick<EventStore, 'readStream'>,
  accountId: number,
  { atMs, environment }: { readonly atMs: number; readonly environment: Environment },
): Promise<Access> {
  const entry = await loadAccount(store, accountId, { untilMs: atMs });
  if (entry === undefined) return { noAccess: { reason: 'the account was not open' }, keys: [] };
  const refused = noAccess(entry.account, atMs);
  if (entry.account === undefined) return { noAccess: refused, keys: null };
  const keys = [...entry.account.keys.values()].map((key) => {
    const reason = keyRefusal(key, environment) ?? refused?.reason ?? null;
    return { key: key.prefix, can_read: reason === null, reason, mobile_number: key.driverMobile };
  });
  return { noAccess: refused, keys };
}

function keyRefusal({ environment, active }: AccountKey, served: Environment): string | undefined {
  if (environment !== served) return `the key belongs to ${environment}`;
  return active ? undefined : 'the key was switched off';
}
