import { unreadableAccounts } from '../../accounts/rows/stored-account.ts';
import { type Coordination, PROCESS_MAX_AGE_MS } from '../../base/coordination/coordination.ts';
import { accountStream } from '../../domain/account-events.ts';
import { formatDateTime } from '../../domain/values/date-time.ts';
import {
  type EventStore,
  MAX_PARKED_READ,
  type PersistentSubscriptions,
} from '../../event-store/event-store.ts';
import { readToEnd } from '../../event-store/reads.ts';
import { type Position, type RecordedEvent, SETTINGS_STREAMS } from '../../event-store/recorded-event.ts';
import { notSkipped, parkedByGroup } from '../../event-store/skipped-events.ts';
import { isBuilding } from '../../pull/view/build/rebuild.ts';
import type { ParkedTransactionEvent } from '../../pull/view/checkpoint.ts';
import { type BuildProgress, buildProgress } from '../../pull/view/checkpoint.ts';
import { VIEW_NAME } from '../../pull/view/projector.ts';
import type { ViewReads } from '../../pull/view/transactions-view.ts';
import { DELIVERIES_GROUP } from '../../push/fan-out/run-fan-out.ts';
import {
  ACCOUNTS_NAME,
  FOLLOWERS,
  type Follower,
  type FollowerReads,
  progressOf,
  secondsBehind,
} from '../../service/ops/followers.ts';
import type { Tables } from '../../tables/tables.ts';
import { duration } from '../print/document.ts';

/** The most events that are counted. More would keep an operator waiting. */
const MAX_COUNTED = 100_000;
const MAX_GLANCE_MS = 5_000;

export interface FollowerStatus {
  readonly name: Follower['name'];
  /** The follower has done everything up to here. */
  readonly position: Position;
  /** The age of the first event that the follower has not done; 0 if there is none. */
  readonly lag_seconds: number;
  /** `null` if there are too many to count, or they are not counted. */
  readonly lag_events: number | null;
  readonly parked: number;
  /** The processes that work on it, separated by commas; `null` if none does. */
  readonly holder: string | null;
  /** The progress of a rebuild, while a command leads it. */
  readonly rebuild?: BuildProgress;
  /** How far a rebuild got that no command leads any more: it was interrupted, or refused because records differ. */
  readonly unfinished_rebuild_percent?: number;
}

export interface FollowerParts extends FollowerReads {
  readonly coordination: Pick<Coordination, 'holder' | 'live' | 'checkpoint'>;
}

export function progressText({ percent, rate, seconds_left }: BuildProgress): string {
  const left = seconds_left === null ? '' : `, ${duration(seconds_left)} left`;
  return `rebuilding: ${percent} %, ${rate} events/s${left}`;
}

/**
 * Returns how far each follower of the log is, what it has parked and who works on it. `glance` reads only the first
 * event that a follower has not done, instead of counting all of them.
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
  const { name, prefixes } = follower;
  const { position, parked } = await progressOf(parts, follower);
  return {
    name,
    position,
    ...(await lagOf(parts, { prefixes, after: position })),
    parked,
    holder: await holderOf(parts, follower),
    ...(name === VIEW_NAME && (await rebuildProgress(parts))),
  };
}

/** Returns how far another view has been built. */
async function rebuildProgress({
  view,
  coordination,
  clock,
}: FollowerParts): Promise<Pick<FollowerStatus, 'rebuild' | 'unfinished_rebuild_percent'>> {
  const build = await view.checkpoint('built');
  const progress = build && buildProgress(build, clock.now());
  const isLed = await isBuilding(coordination);
  return {
    ...(progress && (isLed ? { rebuild: progress } : { unfinished_rebuild_percent: progress.percent })),
  };
}

async function holderOf({ coordination }: FollowerParts, { role, lease }: Follower): Promise<string | null> {
  if (lease !== undefined) return (await coordination.holder(lease))?.holder ?? null;
  const live = await coordination.live(PROCESS_MAX_AGE_MS);
  const holders = live.filter(({ roles }) => role === null || roles.includes(role)).map(({ id }) => id);
  return holders.length === 0 ? null : holders.join(', ');
}

/** Returns the role that works on a follower; `null` if every process does. */
export function roleOf(follower: FollowerStatus['name']): Follower['role'] {
  return FOLLOWERS.find(({ name }) => name === follower)?.role ?? null;
}

const ageAfter: typeof lagAfter = async (parts, place) => {
  const seconds = await secondsBehind(parts, place, AbortSignal.timeout(MAX_GLANCE_MS));
  return { lag_seconds: Math.round(seconds), lag_events: seconds === 0 ? 0 : null };
};

/** Counts what a follower has not done. An event that was recorded while the clock was ahead counts as late by that. */
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
    lag_seconds: oldestMs === undefined ? 0 : Math.round(Math.abs(clock.now() - oldestMs) / 1000),
    lag_events: behind > MAX_COUNTED ? null : behind,
  };
}

export interface ParkedParts {
  readonly store: EventStore;
  readonly view: Pick<ViewReads, 'parked'>;
  readonly subscriptions: Pick<PersistentSubscriptions, 'parked'>;
  /** The tables with the rows of accounts. */
  readonly accounts: Pick<Tables, 'find'>;
}

/** Yields the events that a follower has parked and the operator has not skipped, oldest first. */
export async function* parkedBy(
  follower: Follower['name'],
  { store, view, subscriptions, accounts }: ParkedParts,
  limit = MAX_PARKED_READ,
): AsyncGenerator<ParkedTransactionEvent> {
  if (follower === ACCOUNTS_NAME) yield* parkedOfAccounts(store, accounts);
  if (follower === VIEW_NAME) yield* parkedByView(store, view);
  if (follower !== DELIVERIES_GROUP) return;
  for (const { event, reason, parkedAtMs } of await parkedByGroup(store, subscriptions, {
    group: follower,
    limit,
  })) {
    const { position, stream, revision, type } = event;
    yield { position, stream, revision, type, reason, parkedAtMs };
  }
}

/** Yields the events that the view has parked, oldest first, without skipped ones. */
async function* parkedByView(
  store: Pick<EventStore, 'readStream'>,
  view: Pick<ViewReads, 'parked'>,
): AsyncGenerator<ParkedTransactionEvent> {
  for (let page = await view.parked(), last = page.at(-1); last !== undefined; last = page.at(-1)) {
    yield* await notSkipped(store, page);
    page = await view.parked({ after: last.position });
  }
}

/** Yields the events that make an account unreadable. The follower of accounts handles an event about when it is recorded. */
async function* parkedOfAccounts(
  store: Pick<EventStore, 'readStream'>,
  accounts: Pick<Tables, 'find'>,
): AsyncGenerator<ParkedTransactionEvent> {
  for await (const { id, revision, unreadable, unreadable_at: position } of unreadableAccounts(accounts)) {
    const stream = accountStream(id);
    const reason = unreadable ?? '';
    const event =
      (await eventAt(store, stream, position)) ??
      (await eventAt(store, `${SETTINGS_STREAMS}${stream}`, position));
    yield event === undefined
      ? { position: position ?? 0, stream, revision, type: 'unknown', reason, parkedAtMs: 0 }
      : { ...eventRef(event), reason, parkedAtMs: event.recordedAtMs };
  }
}

async function eventAt(store: Pick<EventStore, 'readStream'>, stream: string, position: Position | null) {
  return (await store.readStream(stream)).find((event) => event.position === position);
}

function eventRef({ position, stream, revision, type }: RecordedEvent) {
  return { position, stream, revision, type };
}

export function parkedAnswer(follower: string, { parkedAtMs, ...event }: ParkedTransactionEvent) {
  return { follower, ...event, parked_at: formatDateTime(parkedAtMs) };
}

export type ParkedAnswer = ReturnType<typeof parkedAnswer>;
