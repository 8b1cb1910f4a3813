import type { Clock } from '../../base/clock.ts';
import { ACCOUNT_STREAMS } from '../../domain/account-events.ts';
import { TRANSACTION_STREAMS } from '../../domain/transaction-events.ts';
import type { EventStore, GroupStatus, PersistentSubscriptions } from '../../event-store/event-store.ts';
import { readToEnd } from '../../event-store/reads.ts';
import type { Position } from '../../event-store/recorded-event.ts';
import { groupStatus } from '../../event-store/skipped-events.ts';
import { countParkedByView } from '../../pull/view/parked-events.ts';
import { VIEW_NAME } from '../../pull/view/projector.ts';
import type { ViewReads } from '../../pull/view/transactions-view.ts';
import { DELIVERIES_GROUP } from '../../push/fan-out/run-fan-out.ts';
import { NOTICES_GROUP } from '../../push/notices/notifier.ts';

/** What follows the log, with the streams that it is for, and the role that works on it. All but the view are groups. */
export const FOLLOWERS = [
  { name: VIEW_NAME, prefixes: [TRANSACTION_STREAMS], role: 'projector' },
  { name: DELIVERIES_GROUP, prefixes: [TRANSACTION_STREAMS], role: 'webhooks' },
  { name: NOTICES_GROUP, prefixes: [ACCOUNT_STREAMS], role: 'notices' },
] as const;

export type Follower = (typeof FOLLOWERS)[number];
export type GroupName = Exclude<Follower['name'], typeof VIEW_NAME>;

export interface FollowerReads {
  readonly store: Pick<EventStore, 'head' | 'subscribe' | 'readStream'>;
  readonly view: Pick<ViewReads, 'checkpoint' | 'countParked' | 'parked'>;
  readonly subscriptions: Pick<PersistentSubscriptions, 'status' | 'parked'>;
  readonly clock: Clock;
}

/** Up to where it has done everything, and how many events it has parked. */
export async function placeOf(
  { store, view, subscriptions }: Pick<FollowerReads, 'store' | 'view' | 'subscriptions'>,
  { name }: Pick<Follower, 'name'>,
): Promise<GroupStatus> {
  if (name === VIEW_NAME) {
    const position = (await view.checkpoint())?.position ?? 0;
    return { position, parked: await countParkedByView(store, view) };
  }
  return groupStatus(store, subscriptions, name);
}

/** Seconds since the first event that a follower has not done; 0 when there is none. Reads one event. */
export async function secondsBehind(
  { store, clock }: Pick<FollowerReads, 'store' | 'clock'>,
  { prefixes, after }: { readonly prefixes: readonly string[]; readonly after: Position },
  signal: AbortSignal,
): Promise<number> {
  if ((await store.head()) <= after) return 0;
  for await (const { events } of readToEnd(store, { prefixes, after, batchSize: 1, signal })) {
    const [first] = events;
    if (first !== undefined) return Math.max(0, (clock.now() - first.recordedAtMs) / 1000);
  }
  signal.throwIfAborted();
  return 0;
}
