import type { ChangeListener, ChangeSignal, Tables } from '../../tables/tables.ts';

/**
 * The time before which nothing is due, as far as this process knows: what it has found first, and what it has made due
 * since. It looks from there on, and after a notification of other processes from the start: some engines keep the index entries
 * of what has ended for minutes, and 28,000 of them take 7 ms.
 */
export class DueFloor {
  readonly #tables: Pick<Tables, 'changed'>;
  #atMs = 0;
  #isLooking = false;
  /** The least that was made due since the look under way began. */
  #leastMs = Number.POSITIVE_INFINITY;
  readonly #listeners = new Map<ChangeListener, ChangeListener>();
  #isOwn = false;
  readonly changed: ChangeSignal;

  constructor(tables: Pick<Tables, 'changed'>) {
    this.#tables = tables;
    this.changed = {
      add: (listener) => this.#add(listener),
      remove: (listener) => this.#remove(listener),
      notify: () => tables.changed.notify(),
    };
  }

  /** While nobody listens, nothing tells of what other processes make due. */
  get atMs(): number {
    return this.#listeners.size === 0 ? 0 : this.#atMs;
  }

  /** Something is due at these times. */
  lower(...timesMs: readonly number[]): void {
    this.#leastMs = timesMs.reduce((a, b) => Math.min(a, b), this.#leastMs);
    this.#atMs = Math.min(this.#atMs, this.#leastMs);
  }

  /** As `lower`; those who wait for work are told. */
  madeDue(timesMs: readonly number[]): void {
    if (timesMs.length === 0) return;
    this.lower(...timesMs);
    this.#isOwn = true;
    try {
      this.#tables.changed.notify();
    } finally {
      this.#isOwn = false;
    }
  }

  /** Raises the floor to what is found first from there on; of several looks at once only the first does. */
  async look(find: (fromMs: number) => Promise<number | undefined>): Promise<number | undefined> {
    if (this.#isLooking) return find(0);
    this.#isLooking = true;
    this.#leastMs = Number.POSITIVE_INFINITY;
    try {
      const firstMs = await find(this.atMs);
      this.#atMs = Math.min(firstMs ?? Number.POSITIVE_INFINITY, this.#leastMs);
      return firstMs;
    } finally {
      this.#isLooking = false;
    }
  }

  #add(listener: ChangeListener): void {
    const own = {
      notify: () => {
        if (!this.#isOwn) this.lower(0);
        listener.notify();
      },
    };
    this.#tables.changed.add(own);
    this.#listeners.set(listener, own);
    this.lower(0);
  }

  #remove(listener: ChangeListener): void {
    const own = this.#listeners.get(listener);
    if (own !== undefined) this.#tables.changed.remove(own);
    this.#listeners.delete(listener);
  }
}
