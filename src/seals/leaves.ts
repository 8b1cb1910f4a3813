import type { EventStore } from '../event-store/event-store.ts';
import type { Gap, Gaps } from '../event-store/operations.ts';
import { readToEnd } from '../event-store/reads.ts';
import type { EventRef, RecordedEvent } from '../event-store/recorded-event.ts';
import { hashOf, isLeaf } from './leaf.ts';
import type { Hash } from './merkle-tree.ts';
import type { TreeStart } from './seals.ts';

/** A leaf of the log's tree. */
export interface Leaf extends EventRef {
  readonly index: number;
  readonly hash: Hash;
  /** The unparsed event; `undefined` if it was erased or replaced. */
  readonly event: RecordedEvent | undefined;
  /** The record of its removal, if it was erased or replaced. The engine may still show the event. */
  readonly gap: Gap | undefined;
}

/** An event reduced to what its leaf needs. */
export interface HashedEvent extends EventRef {
  /** `undefined` if the event is not a leaf. */
  readonly hash: Hash | undefined;
  /** The event itself, if the caller keeps it. */
  readonly event: RecordedEvent | undefined;
}

export function hashed(event: RecordedEvent, { keeps = false } = {}): HashedEvent {
  const { stream, revision } = event;
  const hash = isLeaf(event) ? hashOf(event) : undefined;
  return { stream, revision, hash, event: keeps ? event : undefined };
}

/** Numbers the events of the log in order, and puts the leaves of erased events where they were. */
export class LeafOrder {
  readonly #gaps: Gaps;
  #size: number;

  constructor(size: number, gaps: Gaps) {
    this.#size = size;
    this.#gaps = gaps;
  }

  get size(): number {
    return this.#size;
  }

  /** Returns the leaves of these events, each preceded by the leaves of erased events that were before it. */
  take(events: Iterable<HashedEvent>): Leaf[] {
    const leaves: Leaf[] = [];
    for (const event of events) this.#take(event, leaves);
    return leaves;
  }

  /** Returns the leaves of erased events at the end of the log. */
  end(): Leaf[] {
    const leaves: Leaf[] = [];
    for (let gap = this.#gaps.at(this.#size); gap !== undefined; gap = this.#gaps.at(this.#size))
      leaves.push(this.#erased(gap));
    return leaves;
  }

  #take({ stream, revision, hash, event }: HashedEvent, leaves: Leaf[]): void {
    let gap = this.#gaps.at(this.#size);
    for (; gap !== undefined; gap = this.#gaps.at(this.#size)) {
      const isShown = gap.stream === stream && gap.revision === revision;
      if (isShown && hash === gap.hash) break; // the engine still shows it, or it was not changed
      leaves.push(this.#erased(gap));
      if (isShown) return; // this event has replaced the leaf's
    }
    if (hash === undefined) return;
    leaves.push({ stream, revision, index: this.#size++, hash, event, gap });
  }

  #erased(gap: Gap): Leaf {
    const { stream, revision, hash } = gap;
    return { stream, revision, index: this.#size++, hash, event: undefined, gap };
  }
}

const KEPT = { keeps: true };

interface LeavesOptions {
  readonly gaps: Gaps;
  /** Collects the streams that the engine marks as deleted. */
  readonly deleted?: Set<string>;
  readonly signal?: AbortSignal | undefined;
}

/** Yields the leaves from a start to the end of the log, in batches. */
export async function* leavesAfter(
  store: Pick<EventStore, 'head' | 'subscribe'>,
  { size, position }: Pick<TreeStart, 'size' | 'position'>,
  { gaps, deleted, signal }: LeavesOptions,
): AsyncGenerator<readonly Leaf[], void> {
  const order = new LeafOrder(size, gaps);
  const all = { prefixes: [], after: position, unparsed: true, signal };
  for await (const batch of readToEnd(store, all)) {
    const events = batch.events.map((event) => hashed(event, KEPT));
    for (const { stream, hash } of events) if (hash === undefined) deleted?.add(stream);
    yield order.take(events);
  }
  yield order.end();
}
