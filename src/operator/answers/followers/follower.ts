import { type Coordination, PROCESS_MAX_AGE_MS } from '../../../base/coordination/coordination.ts';
import { readToEnd } from '../../../event-store/reads.ts';
import type { Position } from '../../../event-store/recorded-event.ts';
import { isBuilding } from '../../../pull/view/build/rebuild.ts';
import { type BuildProgress, buildProgress } from '../../../pull/view/checkpoint.ts';
import { PROJECTOR_LEASE, VIEW_NAME } from '../../../pull/view/projector.ts';
import type { ViewReads } from '../../../pull/view/transactions-view.ts';
import {
  FOLLOWERS,
  type Follower,
  type FollowerReads,
  placeOf,
  secondsBehind,
} from '../../../service/ops/followers.ts';
import { type Cell, type Column, state } from '../columns.ts';

/** To count more takes longer than an operator waits. */
const MAX_COUNTED = 100_000;
const MAX_GLANCE_MS = 5_000;

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

export interface FollowerParts extends FollowerReads {
  readonly view: FollowerReads['view'] & Pick<ViewReads, 'building'>;
  readonly coordination: Pick<Coordination, 'holder' | 'live'>;
}

export const FOLLOWER_COLUMNS: readonly Column<FollowerStatus>[] = [
  { head: 'Follower', width: 12, cell: ({ name }) => name },
  {
    head: 'Behind',
    width: 24,
    cell: ({ lag_events, lag_seconds }) =>
      lag_events === 0 ? 'up to date' : `${lag_events ?? 'many'} events, ${duration(lag_seconds)}`,
  },
  { head: 'Position', width: 10, number: true, cell: ({ position }) => position },
  {
    head: 'Parked',
    width: 6,
    number: true,
    cell: ({ parked }) => (parked === 0 ? 0 : state(`${parked}`, 'bad')),
  },
  { head: 'Worked on by', cell: (follower) => [holderOf(follower), rebuildOf(follower)] },
];

function holderOf({ name, holder }: FollowerStatus): Cell {
  if (holder !== null) return holder;
  return state(name === 'transactions' ? 'no projector works' : 'no process consumes it', 'warn');
}

function rebuildOf({ rebuild, unfinished_rebuild_percent: unfinished }: FollowerStatus): Cell {
  if (rebuild !== undefined) return `; ${progressText(rebuild)}`;
  if (unfinished === undefined) return '';
  return `; a rebuild stopped at ${unfinished} %: the same command continues it, with --accept where records differ`;
}

export function progressText({ percent, rate, seconds_left }: BuildProgress): string {
  const left = seconds_left === null ? '' : `, ${duration(seconds_left)} left`;
  return `rebuilding: ${percent} %, ${rate} events/s${left}`;
}

const DAY = 86_400;

/** `45 s`, `12 min`, `3 h 5 min`, `2 days`. */
export function duration(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 120) return `${whole} s`;
  if (whole < 3_600) return `${Math.floor(whole / 60)} min`;
  if (whole < 2 * DAY) return `${Math.floor(whole / 3_600)} h ${Math.floor((whole % 3_600) / 60)} min`;
  return `${Math.floor(whole / DAY)} days`;
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
