import { Directory } from '../../accounts/directory/fold/directory.ts';
import { type Account, type AccountKey, activeProfile } from '../../domain/account.ts';
import { accountStream, type Environment } from '../../domain/account-events.ts';
import { formatDateTime } from '../../domain/values/date-time.ts';
import { recordedAtMs } from '../../event-store/codec.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { AccountHistory } from '../../push/fan-out/account-history.ts';

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
  readonly noAccess: string | null;
  /** The keys that the account had; `null` where it can't be read. */
  readonly keys: readonly KeyAccess[] | null;
}

export async function accessAt(
  store: EventStore,
  accountId: number,
  { atMs, environment }: { readonly atMs: number; readonly environment: Environment },
): Promise<Access> {
  const events = await store.readStream(accountStream(accountId));
  const next = events.find((event) => recordedAtMs(event) > atMs);
  const position = next?.position ?? Number.MAX_SAFE_INTEGER;
  const history = new AccountHistory({ store, directory: new Directory() });
  const judged = await history.asOf({ accountId, position }, (account) => ({
    noAccess: account === undefined ? 'the account was not open' : (noAccessReason(account, atMs) ?? null),
    keys: [...(account?.keys.values() ?? [])].map((key) => {
      const refused = keyRefusal(key, environment) ?? noAccessReason(account, atMs) ?? null;
      return {
        key: key.prefix,
        can_read: refused === null,
        reason: refused,
        mobile_number: key.driverMobile,
      };
    }),
  }));
  return judged.kind === 'known' ? judged.value : { noAccess: 'the account can not be read', keys: null };
}

function keyRefusal({ environment, active }: AccountKey, served: Environment): string | undefined {
  if (environment !== served) return `the key belongs to ${environment}`;
  return active ? undefined : 'the key was switched off';
}

/** Why requests of the account are refused (checks 4 and 5, or unreadable); `undefined` where they are not. */
export function noAccessReason(account: Account | undefined, nowMs: number): string | undefined {
  if (account === undefined) return 'the account can not be read';
  if (account.closed !== null) return `closed: ${account.closed.reason}`;
  return account.integrationEnabled ? noProfileReason(account, nowMs) : 'the integration is off';
}

/** Why check 5 refuses; `undefined` where it does not. */
export function noProfileReason(account: Account, nowMs: number): string | undefined {
  if (activeProfile(account, nowMs) !== undefined) return undefined;
  const profiles = [...account.profiles.values()];
  const starts = profiles.map(({ fromMs }) => fromMs).filter((fromMs) => fromMs > nowMs);
  const next = starts.sort((a, b) => a - b)[0];
  if (next !== undefined) return `its charging profile begins at ${formatDateTime(next)}`;
  const ends = profiles.map(({ toMs }) => toMs ?? 0);
  const last = ends.sort((a, b) => b - a)[0];
  return last === undefined
    ? 'it has no charging profile'
    : `its charging profile ended at ${formatDateTime(last)}`;
}
