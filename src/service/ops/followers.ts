import { ACCOUNTS_LEASE } from '../../accounts/rows/follower.ts';
import { readProgress } from '../../accounts/rows/read-rows.ts';
import { ACCOUNTS } from '../../accounts/rows/tables.ts';
import { ACCOUNT_HISTORY } from '../../accounts/rows/writes-of.ts';
import type { Clock } from '../../base/clock.ts';
import type { Coordination } from '../../base/coordination/coordination.ts';
import { ACCOUNT_STREAMS } from '../../domain/account-events.ts';
import { TRANSACTION_STREAMS } from '../../domain/transaction-events.ts';
import type { EventStore, GroupStatus, PersistentSubscriptions } from '../../event-store/event-store.ts';
import { readToEnd } from '../../event-store/reads.ts';
import type { Position } from '../../event-store/recorded-event.ts';
import { groupStatus } from '../../event-store/skipped-events.ts';
import { countParkedByView } from '../../pull/view/parked-events.ts';
import { PROJECTOR_LEASE, VIEW_NAME } from '../../pull/view/projector.ts';
import type { ViewReads } from '../../pull/view/transactions-view.ts';
import { DELIVERIES_GROUP } from '../../push/fan-out/run-fan-out.ts';
import { NOTICES } from '../../push/notices/notifier.ts';
import type { Tables } from '../../tables/tables.ts';

export const ACCOUNTS_NAME = 'accounts';
/** The most unreadable accounts that are counted. */
const MAX_COUNTED = 10_000;

/**
 * The followers of the log, with the streams that each reads and the role that does the work, any role if it is `null`: the
 * holder of the lease, or every process with the role if there is no lease.
 */
export const FOLLOWERS = [
  { name: ACCOUNTS_NAME, prefixes: ACCOUNT_HISTORY, role: null, lease: ACCOUNTS_LEASE },
  { name: VIEW_NAME, prefixes: [TRANSACTION_STREAMS], role: 'projector', lease: PROJECTOR_LEASE },
  { name: DELIVERIES_GROUP, prefixes: [TRANSACTION_STREAMS], role: 'webhooks', lease: undefined },
  { name: NOTICES, prefixes: [ACCOUNT_STREAMS], role: 'notices', lease: NOTICES },
] as const;

export type Follower = (typeof FOLLOWERS)[number];

export interface FollowerReads {
  readonly store: Pick<EventStore, 'head' | 'subscribe' | 'readStream'>;
  readonly view: Pick<ViewReads, 'checkpoint' | 'countParked' | 'parked'>;
  readonly subscriptions: Pick<PersistentSubscriptions, 'status' | 'parked'>;
  readonly coordination: Pick<Coordination, 'checkpoint'>;
  /** The tables with the rows of accounts. */
  readonly accounts: Pick<Tables, 'get' | 'find' | 'count'>;
  readonly clock: Clock;
}

/**
 * Returns the position up to which a follower is done, and how many events it has parked. For accounts these are the events that
 * make an account unreadable. Notices wait instead of parking.
 */
export async function progressOf(
  { store, view, subscriptions, coordination, accounts }: Omit<FollowerReads, 'clock'>,
  { name }: Pick<Follower, 'name'>,
): Promise<GroupStatus> {
  switch (name) {
    case ACCOUNTS_NAME: {
      const position = (await readProgress(accounts))?.position ?? 0;
      return { position, parked: await accounts.count(ACCOUNTS, { index: 'by_unreadable' }, MAX_COUNTED) };
    }
    case VIEW_NAME: {
      const position = (await view.checkpoint())?.position ?? 0;
      return { position, parked: await countParkedByView(store, view) };
    }
    case NOTICES:
      return { position: (await coordination.checkpoint(name))?.position ?? 0, parked: 0 };
    case DELIVERIES_GROUP:
      return groupStatus(store, subscriptions, name);
    default:
      return name satisfies never;
  }
}

/** Returns the age in seconds of the first event that a follower has not done; 0 if there is none. Reads one event. */
export async function secondsBehind(
  { store, clock }: Pick<FollowerReads, 'store' | 'clock'>,
  { prefixes, after }: { readonly prefixes: readonly string[]; readonly after: Position },
  signal: AbortSignal,
): Promise<number> {
  if ((await store.head()) <= after) return 0;
  for await (const { events } of readToEnd(store, { prefixes, after, batchSize: 1, signal })) {
    const [first] = events;
    if (first !== undefined) return Math.abs(clock.now() - first.recordedAtMs) / 1000;
  }
  signal.throwIfAborted();
  return 0;
}
