import { OPERATIONS_STREAM } from '../../domain/operations-events.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { type Gaps, operationsOf } from '../../event-store/operations.ts';
import { type Position, textOfRef } from '../../event-store/recorded-event.ts';
import { type Leaf, leavesAfter } from '../../seals/leaves.ts';
import { isMark } from '../../service/stores/moved-store.ts';

export interface LogComparison {
  /** The number of events that are the same in both logs, in the same order. */
  readonly events: number;
  /** The first difference, if there is one. Nothing after it was compared. */
  readonly fault: string | undefined;
}

export interface LogComparisonOptions {
  readonly source: EventStore;
  readonly target: EventStore;
  /** The end of the target's log when it was copied (default: its present end). */
  readonly copyEnd?: Position | undefined;
  readonly onProgress: (events: number) => void;
}

/**
 * Compares two logs leaf by leaf, as they are sealed: stream, revision, id, type, data, metadata and order of all events. It
 * leaves out the name of the store, which comes first in a target, and the marks of a moved store.
 */
export async function compareLogs(options: LogComparisonOptions): Promise<LogComparison> {
  const { source, target, copyEnd = Number.POSITIVE_INFINITY, onProgress } = options;
  const { gaps } = await operationsOf(target); // it has the erasures of both, since it may have erased more after it was copied
  const [ours, theirs] = [leavesOf(source, gaps), leavesOf(target, gaps, copyEnd)];
  let events = 1; // the name of the store
  try {
    for await (const leaf of ours) {
      const fault = differenceOf(leaf, await nextOf(theirs));
      if (fault !== undefined) return { events, fault };
      if (leaf.event !== undefined) onProgress(++events);
    }
    const other = await nextOf(theirs);
    return { events, fault: other && `${textOfRef(other)} is in the target only` };
  } finally {
    await Promise.all([ours.return(), theirs.return()]);
  }
}

function differenceOf(leaf: Leaf, other: Leaf | undefined): string | undefined {
  const place = textOfRef(leaf);
  if (other === undefined) return `${place} (${leaf.event?.type ?? 'erased'}) is not in the target`;
  if (textOfRef(other) !== place) return `the target has ${textOfRef(other)} in place of ${place}`;
  return other.hash === leaf.hash ? undefined : `${place} differs in the target`;
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
