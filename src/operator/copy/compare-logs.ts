import { isMark } from '../../accounts/moved-store.ts';
import { OPERATIONS_STREAM } from '../../domain/operations-events.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { type Position, textOfRef } from '../../event-store/recorded-event.ts';
import { type Leaf, leavesAfter } from '../../seals/leaves.ts';
import type { Gaps } from '../../seals/seals.ts';

/** This many missing events are named. The others are counted. */
const MAX_NAMED = 10;

export interface LogComparison {
  /** The number of events that are the same in both logs, in the same order. */
  readonly events: number;
  /** The position of the last of them in the source. */
  readonly copiedTo: Position;
  /** The first difference, if there is one. Nothing after it was compared. */
  readonly fault: string | undefined;
  /** The number of events of the source that come after the target's end. */
  readonly missing: number;
  /** The first of these events, one line each. */
  readonly missingNamed: readonly string[];
}

export interface LogComparisonOptions {
  readonly source: EventStore;
  readonly target: EventStore;
  /** Everything that was erased, read from a log that has all of it. */
  readonly gaps: Gaps;
  /** The end of the target's log when it was copied (default: its present end). */
  readonly copyEnd?: Position | undefined;
  readonly onProgress: (events: number) => void;
}

/**
 * Compares two logs leaf by leaf, as they are sealed: stream, revision, id, type, data, metadata and order of all events. It
 * leaves out the name of the store, which comes first in a target, and the marks of a moved store.
 */
export async function compareLogs(options: LogComparisonOptions): Promise<LogComparison> {
  const { source, target, gaps, copyEnd = Number.POSITIVE_INFINITY, onProgress } = options;
  const [ours, theirs] = [leavesOf(source, gaps), leavesOf(target, gaps, copyEnd)];
  // Both logs have the name of the store, which counts as one event.
  const found = { events: 1, copiedTo: 0, missing: 0, missingNamed: [] as string[] };
  try {
    let other = await nextOf(theirs);
    for await (const leaf of ours) {
      if (other === undefined) {
        if (leaf.event === undefined) continue;
        found.missing += 1;
        if (found.missing <= MAX_NAMED)
          found.missingNamed.push(`${textOfRef(leaf)} (${leaf.event.type}) is not in the target`);
        continue;
      }
      if (other.hash !== leaf.hash || textOfRef(other) !== textOfRef(leaf))
        return { ...found, fault: faultOf(leaf, other) };
      if (leaf.event !== undefined) {
        found.events += 1;
        found.copiedTo = leaf.event.position;
        onProgress(found.events);
      }
      other = await nextOf(theirs);
    }
    return { ...found, fault: other && `${textOfRef(other)} is in the target only` };
  } finally {
    await Promise.all([ours.return(), theirs.return()]);
  }
}

function faultOf(leaf: Leaf, other: Leaf): string {
  return textOfRef(other) === textOfRef(leaf)
    ? `${textOfRef(leaf)} differs in the target`
    : `the target has ${textOfRef(other)} in place of ${textOfRef(leaf)}`;
}

async function nextOf(leaves: AsyncGenerator<Leaf, void>): Promise<Leaf | undefined> {
  return (await leaves.next()).value ?? undefined;
}

async function* leavesOf(
  store: EventStore,
  gaps: Gaps,
  end = Number.POSITIVE_INFINITY,
): AsyncGenerator<Leaf, void> {
  for await (const leaves of leavesAfter(store, { size: 0, position: 0 }, { gaps }))
    for (const leaf of leaves) {
      const { event, stream, revision } = leaf;
      if (event !== undefined && event.position >= end) return;
      if ((stream === OPERATIONS_STREAM && revision === 0) || (event !== undefined && isMark(event)))
        continue;
      yield leaf;
    }
}
