import type { Rest } from '../../base/pause.ts';
import { world } from '../../base/world.ts';
import type { Damage, EventStore } from '../../event-store/event-store.ts';
import type { IdSet } from './id-set.ts';
import type { Judge, ProjectedEvent, VerifyScope } from './read-log.ts';

/** The number of transactions whose streams are compared together. */
export const PART = 200;
/** Differences are compared again after this time, since view and deliveries follow the log with a short delay. */
const SETTLE_MS = 1_000;

/** Compares the transactions of a block with what is stored, by one bulk read. Returns those that differ. */
export type Comparison = () => Promise<Iterable<number>>;

/** What is compared with the events: the view, or the deliveries. */
export interface Side<Agreement> {
  /** The transactions whose events were seen. Nothing else of the log is kept. */
  readonly known: IdSet;
  /** Takes blocks in the order of the log. Their comparisons may run at the same time. */
  begin(block: readonly ProjectedEvent[]): Promise<Comparison>;
  /** Yields the transactions of which something is stored. */
  stored(): AsyncGenerator<readonly number[]>;
  /** Compares whole streams of transactions that differed, or of which no event was seen. */
  settle(parts: AsyncGenerator<readonly number[]>): Promise<Agreement>;
}

export interface SideOptions extends VerifyScope {
  readonly store: EventStore;
  /** Damaged events. Nothing that depends on them is judged. */
  readonly damage?: readonly Damage[] | undefined;
  readonly settleMs?: number | undefined;
  /** Called between steps; a turn of the event loop unless given. */
  readonly rest?: Rest | undefined;
}

/**
 * Compares one side with what the events call for, block by block. At the end it looks for what is stored although no
 * event calls for it, and a second later compares everything that differed once more.
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

  /** Called when the log has been read. */
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
