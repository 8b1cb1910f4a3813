import type { DeliverySummary } from '../../push/queue/delivery.ts';
import type { DeliveryFilter, DeliveryReads } from '../../push/queue/delivery-queue.ts';

/** Changes are noticed in this many of the newest deliveries. New deliveries are all noticed, however many there are. */
const FOLLOWED = 10_000;
const PAGE = 1_000;

/** Finds what is new or has changed among the newest deliveries of a filter since the last look. */
export class DeliveryChanges {
  readonly #queue: Pick<DeliveryReads, 'page'>;
  readonly #filter: DeliveryFilter;
  #known: ReadonlyMap<string, string> | undefined;

  constructor(queue: Pick<DeliveryReads, 'page'>, filter: DeliveryFilter) {
    this.#queue = queue;
    this.#filter = filter;
  }

  /** Returns the changes, oldest first. At the first look these are all deliveries. */
  async look(): Promise<readonly DeliverySummary[]> {
    const known = this.#known;
    const found = await this.#newest();
    const texts = new Map(found.map((delivery) => [delivery.id, JSON.stringify(delivery)]));
    this.#known = texts;
    return found.filter(({ id }) => known?.get(id) !== texts.get(id)).toReversed();
  }

  async #newest(): Promise<readonly DeliverySummary[]> {
    let found: readonly DeliverySummary[] = [];
    for (;;) {
      const { deliveries, next } = await this.#queue.page(this.#filter, { limit: PAGE, after: found.at(-1) });
      found = found.concat(deliveries);
      const mayBeNew = this.#known !== undefined && !deliveries.some(({ id }) => this.#known?.has(id));
      if (next === undefined || (found.length >= FOLLOWED && !mayBeNew)) return found;
    }
  }
}
