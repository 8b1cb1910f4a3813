/**
 * The time before which nothing is due, as far as this process knows: what it has found first, and what it has made due
 * since. Between two polls it looks from there on. From the start it would walk over the entries of all deliveries that
 * ended in the last minutes, which MongoDB keeps for readers of its past: 7 ms after 28,000.
 */
export class DueFloor {
  #atMs = 0;
  /** Of each look under way: the least that was made due since it began. */
  readonly #looks = new Set<{ leastMs: number }>();

  get atMs(): number {
    return this.#atMs;
  }

  /** Something is due at this time. */
  lower(atMs: number): void {
    this.#atMs = Math.min(this.#atMs, atMs);
    for (const look of this.#looks) look.leastMs = Math.min(look.leastMs, atMs);
  }

  /** Raises the floor to what the look finds first. One from the start may find what another process made due. */
  async look(
    from: 'floor' | 'start',
    find: (fromMs: number) => Promise<number | undefined>,
  ): Promise<number | undefined> {
    const look = { leastMs: Number.POSITIVE_INFINITY };
    this.#looks.add(look);
    try {
      const firstMs = await find(from === 'floor' ? this.#atMs : 0);
      if (from === 'start' && firstMs !== undefined) this.lower(firstMs);
      this.#atMs = Math.min(firstMs ?? Number.POSITIVE_INFINITY, look.leastMs);
      return firstMs;
    } finally {
      this.#looks.delete(look);
    }
  }
}
