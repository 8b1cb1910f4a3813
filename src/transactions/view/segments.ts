import type { Position } from '../../event-store/event-store.ts';
import type { Bounds, Segment } from './view-builds.ts';

/** About how many events a segment has: the projector notes a bound after each so many. */
export const SEGMENT_EVENTS = 100_000;

/** The bounds up to `end` as segments without a gap, from the start of the log. */
export function boundsUpTo(segments: readonly Bounds[], end: Position): Bounds[] {
  const ends = [...new Set(segments.map(({ upTo }) => upTo))].filter((upTo) => upTo <= end);
  const sorted = ends.sort((a, b) => a - b);
  return sorted.map((upTo, at) => ({ after: sorted[at - 1] ?? 0, upTo }));
}

/** How far the segments reach without a gap; they may overlap. */
export function plannedUpTo(segments: readonly Bounds[]): Position {
  let reached = 0;
  for (const { after, upTo } of segments.toSorted((a, b) => a.after - b.after)) {
    if (after > reached) break;
    reached = Math.max(reached, upTo);
  }
  return reached;
}

export function isApplied({ position, upTo }: Segment): boolean {
  return position >= upTo;
}

export function overlaps(one: Bounds, other: Bounds): boolean {
  return one.after < other.upTo && other.after < one.upTo;
}
