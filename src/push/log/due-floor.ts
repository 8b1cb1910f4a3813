import type { ChangeListener, ChangeSignal, Tables } from '../../tables/tables.ts';

/**
 * The time before which nothing is due, as far as this process knows: the first due time that it has found, and those that
 * it has set since. Looks begin there, and at the start again after a notification by another process. The reason is that
 * PostgreSQL keeps the index entries of ended deliveries as long as an older snapshot is open, such as that of `pg_dump`:
 * each look past 30,000 of them takes 5 ms.
 */
export class DueFloor {
  readonly #tables: Pick<Tables, 'changed'>;
  #atMs = 0;
  #isLooking = false;
  /** The earliest due time that was set since the look under way began. */
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

  /** Without a listener there are no notifications of other processes, so looks begin at the start. */
  get atMs(): number {
    return this.#listeners.size === 0 ? 0 : this.#atMs;
  }

  /** Notes that something is due at these times. */
  lower(...timesMs: readonly number[]): void {
    this.#leastMs = timesMs.reduce((a, b) => Math.min(a, b), this.#leastMs);
    this.#atMs = Math.min(this.#atMs, this.#leastMs);
  }

  /** Like `lower`, and notifies those who wait for work. */
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

  /** Looks from the floor on, and raises it to the first due time found. Of several looks at once, only the first raises it. */
  async look<T extends { readonly firstAtMs: number | undefined }>(
    find: (fromMs: number) => Promise<T>,
  ): Promise<T> {
    if (this.#isLooking) return find(0);
    this.#isLooking = true;
    this.#leastMs = Number.POSITIVE_INFINITY;
    try {
      const found = await find(this.atMs);
      this.#atMs = Math.min(found.firstAtMs ?? Number.POSITIVE_INFINITY, this.#leastMs);
      return found;
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
