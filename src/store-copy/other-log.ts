import type { StoredDelivery } from '../deliveries/queue/log-copy.ts';

/** A delivery log that is read beside another, both by id: range by range, each delivery once. */
export class OtherLog {
  readonly #batches: AsyncIterator<readonly StoredDelivery[]>;
  #read: StoredDelivery[] = [];
  #ended = false;

  constructor(batches: AsyncIterable<readonly StoredDelivery[]>) {
    this.#batches = batches[Symbol.asyncIterator]();
  }

  /** Those behind the last range up to this id, by id; without one all that are left. */
  async upTo(lastId: string | undefined): Promise<ReadonlyMap<string, StoredDelivery>> {
    const isWithin = ({ id }: StoredDelivery): boolean => lastId === undefined || id <= lastId;
    const found = new Map<string, StoredDelivery>();
    for (;;) {
      const beyond = this.#read.findIndex((delivery) => !isWithin(delivery));
      const within = beyond === -1 ? this.#read : this.#read.slice(0, beyond);
      for (const delivery of within) found.set(delivery.id, delivery);
      this.#read = this.#read.slice(within.length);
      if (this.#read.length > 0 || this.#ended) return found;
      const { value, done } = await this.#batches.next();
      if (done === true) this.#ended = true;
      else this.#read = [...value];
    }
  }

  async close(): Promise<void> {
    await this.#batches.return?.();
  }
}
