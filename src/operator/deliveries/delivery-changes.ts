import type { DeliverySummary } from '../../push/queue/delivery.ts';
import type { DeliveryFilter, DeliveryReads } from '../../push/queue/delivery-queue.ts';

/** The newest of a filter whose changes are seen; of what is new nothing is left out, however much it is. */
const FOLLOWED = 10_000;
const PAGE = 1_000;

/** What is new or has changed among the newest deliveries of a filter, from look to look. */
export class DeliveryChanges {
  readonly #queue: Pick<DeliveryReads, 'page'>;
  readonly #filter: DeliveryFilter;
  #known: ReadonlyMap<string, string> | undefined;

  constructor(queue: Pick<DeliveryReads, 'page'>, filter: DeliveryFilter) {
    this.#queue = queue;
    this.#filter = filter;
  }

  /** Oldest first; all of them at the first look. */
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
