import type { Clock } from '../../base/clock.ts';
import { type Coordination, PROCESS_MAX_AGE_MS } from '../../base/coordination/coordination.ts';
import { ACCOUNT_STREAMS } from '../../domain/account-events.ts';
import { TRANSACTION_STREAMS } from '../../domain/transaction-events.ts';
import type {
  EventStore,
  GroupStatus,
  PersistentSubscriptions,
  Position,
} from '../../event-store/event-store.ts';
import { readToEnd } from '../../event-store/reads.ts';
import { groupStatus } from '../../event-store/skipped-events.ts';
import { type BuildProgress, buildProgress } from '../../pull/view/build/progress.ts';
import { isBuilding } from '../../pull/view/build/rebuild.ts';
import { countParkedByView } from '../../pull/view/parked-events.ts';
import { PROJECTOR_LEASE, VIEW_NAME } from '../../pull/view/projector.ts';
import type { ViewReads } from '../../pull/view/transactions-view.ts';
import { DELIVERIES_GROUP } from '../../push/fan-out/run-fan-out.ts';
import { NOTICES_GROUP } from '../../push/notices/notifier.ts';

/** To count more takes longer than an operator waits. */
const MAX_COUNTED = 100_000;
const MAX_GLANCE_MS = 5_000;

/** What follows the log, with the streams that it is for, and the role that works on it. All but the view are groups. */
export const FOLLOWERS = [
  { name: VIEW_NAME, prefixes: [TRANSACTION_STREAMS], role: 'projector' },
  { name: DELIVERIES_GROUP, prefixes: [TRANSACTION_STREAMS], role: 'webhooks' },
  { name: NOTICES_GROUP, prefixes: [ACCOUNT_STREAMS], role: 'notices' },
] as const;

export type Follower = (typeof FOLLOWERS)[number];
export type GroupName = Exclude<Follower['name'], typeof VIEW_NAME>;

export interface FollowerStatus {
  readonly name: Follower['name'];
  /** Everything up to here is done. */
  readonly position: Position;
  /** Age of the first event that is not done; 0 when there is none. */
  readonly lag_seconds: number;
  /** `null` where there are too many to count, or they are not counted. */
  readonly lag_events: number | null;
  readonly parked: number;
  /** The processes that work on it, separated by commas; `null` where none does. */
  readonly holder: string | null;
  /** Of a view that is being built beside the served one, while a command leads that. */
  readonly rebuild?: BuildProgress;
  /** How far a rebuild is that no command leads: interrupted, or refused since records differ. */
  readonly unfinished_rebuild_percent?: number;
}

export interface FollowerParts {
  readonly store: Pick<EventStore, 'head' | 'subscribe' | 'readStream'>;
  readonly view: Pick<ViewReads, 'checkpoint' | 'building' | 'countParked' | 'parked'>;
  readonly subscriptions: Pick<PersistentSubscriptions, 'status' | 'parked'>;
  readonly coordination: Pick<Coordination, 'holder' | 'live'>;
  readonly clock: Clock;
}

/**
 * How far each follower of the log is, what it has parked and who works on it: the view, then the groups. `glance` reads
 * one event of what a follower has not done, instead of counting it.
 */
export async function followerStatus(
  parts: FollowerParts,
  { glance = false }: { readonly glance?: boolean } = {},
): Promise<FollowerStatus[]> {
  return Promise.all(FOLLOWERS.map((follower) => statusOf(parts, follower, glance ? ageAfter : lagAfter)));
}

export async function statusOf(
  parts: FollowerParts,
  follower: Follower,
  lagOf = lagAfter,
): Promise<FollowerStatus> {
  const { name, prefixes, role } = follower;
  const { position, parked } = await placeOf(parts, follower);
  return {
    ...{ name, position, ...(await lagOf(parts, { prefixes, after: position })), parked },
    ...(name === VIEW_NAME ? await leaderOf(parts) : { holder: await holdersOf(parts, role) }),
  };
}

/** Up to where it has done everything, and how many events it has parked. */
export async function placeOf(
  { store, view, subscriptions }: Pick<FollowerParts, 'store' | 'view' | 'subscriptions'>,
  { name }: Pick<Follower, 'name'>,
): Promise<GroupStatus> {
  if (name === VIEW_NAME) {
    const position = (await view.checkpoint())?.position ?? 0;
    return { position, parked: await countParkedByView(store, view) };
  }
  return groupStatus(store, subscriptions, name);
}

/** Which projector is active, and how far another view is. */
async function leaderOf({
  view,
  coordination,
  clock,
}: FollowerParts): Promise<Pick<FollowerStatus, 'holder' | 'rebuild' | 'unfinished_rebuild_percent'>> {
  const build = await view.building();
  const progress = build && buildProgress(build, clock.now());
  const isLed = await isBuilding(coordination, clock);
  return {
    holder: (await coordination.holder(PROJECTOR_LEASE))?.holder ?? null,
    ...(progress && (isLed ? { rebuild: progress } : { unfinished_rebuild_percent: progress.percent })),
  };
}

async function holdersOf({ coordination }: FollowerParts, role: string): Promise<string | null> {
  const live = await coordination.live(PROCESS_MAX_AGE_MS);
  const holders = live.filter(({ roles }) => roles.includes(role)).map(({ id }) => id);
  return holders.length === 0 ? null : holders.join(', ');
}

/** Whether nobody works on a follower that has, or had, work to do. */
export function isIdle(
  { name, holder, lag_events, position }: FollowerStatus,
  { webhooks }: { readonly webhooks: number },
): boolean {
  return holder === null && (lag_events !== 0 || position > 0 || (name !== VIEW_NAME && webhooks > 0));
}

/** The role that works on it. */
export function roleOf(follower: FollowerStatus['name']): string {
  return FOLLOWERS.find(({ name }) => name === follower)?.role ?? 'projector';
}

/** Longer than a replaced projector, or an import, delays a follower. */
export const MAX_LAG_SECONDS = 60;

/** Seconds since the first event that a follower has not done; 0 when there is none. Reads one event. */
export async function secondsBehind(
  { store, clock }: Pick<FollowerParts, 'store' | 'clock'>,
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

const ageAfter: typeof lagAfter = async (parts, place) => {
  const seconds = await secondsBehind(parts, place, AbortSignal.timeout(MAX_GLANCE_MS));
  return { lag_seconds: Math.round(seconds), lag_events: seconds === 0 ? 0 : null };
};

/** What a follower has not done. */
export async function lagAfter(
  { store, clock }: Pick<FollowerParts, 'store' | 'clock'>,
  place: { readonly prefixes: readonly string[]; readonly after: Position },
): Promise<Pick<FollowerStatus, 'lag_seconds' | 'lag_events'>> {
  let behind = 0;
  let oldestMs: number | undefined;
  for await (const { events } of readToEnd(store, place)) {
    oldestMs ??= events[0]?.recordedAtMs;
    behind += events.length;
    if (behind > MAX_COUNTED) break;
  }
  return {
    lag_seconds: oldestMs === undefined ? 0 : Math.max(0, Math.round((clock.now() - oldestMs) / 1000)),
    lag_events: behind > MAX_COUNTED ? null : behind,
  };
}
