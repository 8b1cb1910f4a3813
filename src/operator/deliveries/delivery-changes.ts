import type { Shown } from '../../push/held.ts';
import type { DeliveryPlace, PageOptions } from '../../push/queue/delivery-queue.ts';

/** Changes are noticed in this many of the newest deliveries. New deliveries are all noticed, however many there are. */
const FOLLOWED = 10_000;
const PAGE = 1_000;

/** Reads a page of the deliveries that are followed, as they are shown. */
export type ReadShown = (options: Pick<PageOptions, 'limit' | 'after'>) => Promise<{
  readonly deliveries: readonly Shown[];
  readonly next: DeliveryPlace | undefined;
}>;

/** Finds what is new or has changed among the newest deliveries since the last look. */
export class DeliveryChanges {
  readonly #read: ReadShown;
  #known: ReadonlyMap<string, string> | undefined;

  constructor(read: ReadShown) {
    this.#read = read;
  }

  /** Returns the changes, oldest first. At the first look these are all deliveries. */
  async look(): Promise<readonly Shown[]> {
    const known = this.#known;
    const found = await this.#newest();
    const texts = new Map(found.map((delivery) => [delivery.id, JSON.stringify(delivery)]));
    this.#known = texts;
    return found.filter(({ id }) => known?.get(id) !== texts.get(id)).toReversed();
  }

  async #newest(): Promise<readonly Shown[]> {
    let found: readonly Shown[] = [];
    for (;;) {
      const { deliveries, next } = await this.#read({ limit: PAGE, after: found.at(-1) });
      found = found.concat(deliveries);
      const mayBeNew = this.#known !== undefined && !deliveries.some(({ id }) => this.#known?.has(id));
      if (next === undefined || (found.length >= FOLLOWED && !mayBeNew)) return found;
    }
  }
}
