import type { EventStore } from '../event-store/event-store.ts';
import { readToEnd } from '../event-store/reads.ts';
import type { RecordedEvent } from '../event-store/recorded-event.ts';
import { hashOf, isLeaf, type Place } from './leaf.ts';
import type { Hash } from './merkle-tree.ts';
import type { Anchor, Gap, Gaps } from './seals.ts';

/** One leaf of the log's tree, in its order. */
export interface Leaf extends Place {
  readonly index: number;
  readonly hash: Hash;
  /** Unparsed; `undefined` where it was erased, or is another one since. */
  readonly event: RecordedEvent | undefined;
  /** What says that it was taken out; the engine may still show it. */
  readonly gap: Gap | undefined;
}

/** An event as its leaf needs it, without what it holds. */
export interface HashedEvent extends Place {
  /** `undefined` where it is no leaf. */
  readonly hash: Hash | undefined;
  /** Where it is kept. */
  readonly event: RecordedEvent | undefined;
}

export function hashed(event: RecordedEvent, { keeps = false } = {}): HashedEvent {
  const { stream, revision } = event;
  const hash = isLeaf(event) ? hashOf(event) : undefined;
  return { stream, revision, hash, event: keeps ? event : undefined };
}

/** Numbers the events of the log in its order, and puts what was erased where it was. */
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

  /** The leaves of these events, each after those of what was erased before it. */
  take(events: Iterable<HashedEvent>): Leaf[] {
    const leaves: Leaf[] = [];
    for (const event of events) this.#take(event, leaves);
    return leaves;
  }

  /** What was erased at the end of the log. */
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
      if (isShown && hash === gap.hash) break; // it is not gone yet, or was left as it is
      leaves.push(this.#erased(gap));
      if (isShown) return; // another one stands in its place
    }
    if (hash === undefined || this.#gaps.isUnnamed(stream)) return;
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
  /** Takes the streams that the engine says are deleted. */
  readonly deleted?: Set<string>;
  readonly signal?: AbortSignal | undefined;
}

/** The leaves after an anchor, to the end of the log, in batches. */
export async function* leavesAfter(
  store: Pick<EventStore, 'head' | 'subscribe'>,
  { size, position }: Pick<Anchor, 'size' | 'position'>,
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
