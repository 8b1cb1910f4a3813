import type { Coordination } from '../../../coordination/coordination.ts';
import { TRANSACTION_STREAMS } from '../../../domain/transaction-events.ts';
import type { EventStore, RecordedEvent } from '../../../event-store/event-store.ts';
import type { Log } from '../../../log.ts';
import { pause } from '../../../pause.ts';
import { retryWhileUnavailable } from '../../../retry.ts';
import { applyOrPark } from '../apply-or-park.ts';
import { isApplied, plannedUpTo, SEGMENT_EVENTS } from '../segments.ts';
import type { Segment, ViewBuild } from '../view-builds.ts';
import { changesOfWholeStreams } from './whole-streams.ts';

const LEASE_MS = 10_000;
const RENEW_EVERY_MS = 2_000;
const LOOK_EVERY_MS = 200;
const BATCH = 1_000;
/** Longer than a failover takes. */
const MAX_UNAVAILABLE_MS = 20_000;

export interface SegmentsOptions {
  readonly store: EventStore;
  readonly build: ViewBuild;
  readonly coordination: Coordination;
  /** Names this worker among those that take segments. */
  readonly holder: string;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/**
 * Applies one segment after the other, each under a lease, until all are applied, by whichever worker; or until the build
 * was dropped or is served, or `signal` aborts. Two workers that apply the same one by mistake do no harm. Returns the
 * number of events applied.
 */
export async function applySegments(options: SegmentsOptions): Promise<number> {
  const { build, coordination, holder, signal } = options;
  let events = 0;
  while (!signal.aborted) {
    const checkpoint = await build.checkpoint();
    const segments = await build.segments();
    if (checkpoint === undefined) break;
    const open = segments.filter((segment) => !isApplied(segment));
    if (open.length === 0 && plannedUpTo(segments) >= checkpoint.servesFrom) break;
    const taken = await takeOne(open, options);
    if (taken === undefined) {
      await pause(LOOK_EVERY_MS, signal);
      continue;
    }
    try {
      events += await applySegment(taken, options);
    } finally {
      await coordination.release(leaseOf(build, taken), holder);
    }
  }
  return events;
}

async function takeOne(
  segments: readonly Segment[],
  { build, coordination, holder }: SegmentsOptions,
): Promise<Segment | undefined> {
  for (const segment of segments) {
    if (await coordination.acquire(leaseOf(build, segment), holder, LEASE_MS)) return segment;
  }
  return undefined;
}

function leaseOf({ generation }: ViewBuild, { upTo }: Segment): string {
  return `view-segment-${generation}-${upTo}`;
}

/**
 * Stops early where the lease is lost. While an engine is unavailable it waits, then continues where it was; rejects with
 * its error after a while: a disk that is full does not become available by waiting.
 */
async function applySegment(segment: Segment, options: SegmentsOptions): Promise<number> {
  const { log, signal } = options;
  let events = 0;
  let from = segment.position;
  await retryWhileUnavailable(
    async (available) => {
      for await (const { count, position } of batchesOf(segment, from, options)) {
        events += count;
        from = position;
        available();
      }
    },
    { log, signal, component: 'view build', maxUnavailableMs: MAX_UNAVAILABLE_MS },
  );
  return events;
}

async function* batchesOf(
  segment: Segment,
  after: number,
  options: SegmentsOptions,
): AsyncGenerator<{ readonly count: number; readonly position: number }, void> {
  const { store, build, coordination, holder, signal } = options;
  const { upTo } = segment;
  let from = after;
  let renewedAtMs = performance.now();
  let noted = 0;
  const log = { prefixes: [TRANSACTION_STREAMS], after, batchSize: BATCH, signal };
  for await (const batch of store.subscribe(log)) {
    const position = batch.position < upTo ? batch.checkpoint : upTo;
    const events = batch.events.filter((event) => event.position <= upTo);
    await applyEvents(events, { store, build, upTo, from, position });
    from = position;
    yield { count: events.length, position };
    if (position >= upTo) return;
    noted += events.length;
    if (noted >= SEGMENT_EVENTS) {
      await build.noteBound(position);
      noted = 0;
    }
    if (performance.now() - renewedAtMs < RENEW_EVERY_MS) continue;
    if (!(await coordination.acquire(leaseOf(build, segment), holder, LEASE_MS))) return;
    renewedAtMs = performance.now();
  }
}

async function applyEvents(
  events: readonly RecordedEvent[],
  place: {
    readonly store: EventStore;
    readonly build: ViewBuild;
    readonly upTo: number;
    readonly from: number;
    readonly position: number;
  },
): Promise<void> {
  const { store, build, upTo, from, position } = place;
  const changes = await changesOfWholeStreams(store, events);
  await applyOrPark(changes, (some, isWhole) =>
    build.applySegment(some, {
      upTo,
      position: isWhole ? position : from,
      events: isWhole ? events.length : 0,
    }),
  );
}
