import type { Rest } from '../../base/pause.ts';
import { world } from '../../base/world.ts';
import type { Damage, EventStore } from '../../event-store/event-store.ts';
import type { IdSet } from './id-set.ts';
import type { Judge, ProjectedEvent, VerifyScope } from './read-log.ts';

/** Transactions that are compared together by their streams. */
export const PART = 200;
/** What was recorded a moment ago may not be stored yet: it gets this long before it counts as missing. */
const SETTLE_MS = 1_000;

/**
 * Compares the transactions of a block with what is stored, by one bulk read, perhaps beside other blocks; returns those that
 * differ.
 */
export type Comparison = () => Promise<Iterable<number>>;

/** What is compared with the events: the view, or the deliveries. */
export interface Side<Agreement> {
  /** Transactions of which an event was seen: a bit each, which is all that is kept of the log. */
  readonly known: IdSet;
  /** Takes a block, in the order of the log. */
  begin(block: readonly ProjectedEvent[]): Promise<Comparison>;
  /** Transactions of which something is stored. */
  stored(): AsyncGenerator<readonly number[]>;
  /** Compares transactions that differed, or of which no event was seen, by their whole streams. */
  settle(parts: AsyncGenerator<readonly number[]>): Promise<Agreement>;
}

export interface SideOptions extends VerifyScope {
  readonly store: EventStore;
  /** As the store found it: what depends on a damaged event is not judged. */
  readonly damage?: readonly Damage[] | undefined;
  readonly settleMs?: number | undefined;
  /** Between the steps at the end; a turn of the event loop unless given. */
  readonly rest?: Rest | undefined;
}

/**
 * Compares one side with what the events call for, block by block of the log. Then it looks for what is stored and no event
 * calls for, and a second later compares all that differed once more, since each side follows the log.
 */
export class SideJudge<Agreement> implements Judge {
  readonly #side: Side<Agreement>;
  readonly #settleMs: number;
  readonly #rest: Rest;
  readonly #suspects = new Set<number>();
  #begun: Promise<unknown> = Promise.resolve();

  constructor(side: Side<Agreement>, { settleMs = SETTLE_MS, rest }: Pick<SideOptions, 'settleMs' | 'rest'>) {
    this.#side = side;
    this.#settleMs = settleMs;
    this.#rest = rest ?? (() => world.nextTurn());
  }

  async judge(block: readonly ProjectedEvent[]): Promise<void> {
    const begun = this.#begun.then(() => this.#side.begin(block));
    this.#begun = begun;
    const compare = await begun;
    for (const id of await compare()) this.#suspects.add(id);
  }

  /** Once the log was read. */
  async finish(): Promise<Agreement> {
    for await (const ids of this.#side.stored()) {
      for (const id of ids) if (!this.#side.known.has(id)) this.#suspects.add(id);
      await this.#rest();
    }
    if (this.#suspects.size > 0) await world.sleep(this.#settleMs);
    return this.#side.settle(this.#parts());
  }

  async *#parts(): AsyncGenerator<readonly number[]> {
    const suspects = [...this.#suspects].sort((a, b) => a - b);
    for (let at = 0; at < suspects.length; at += PART) {
      if (at > 0) await this.#rest();
      yield suspects.slice(at, at + PART);
    }
  }
}
