/** A set of ids. Since ids nearly always follow one another, 32 of them share an entry of a map. */
export class IdSet implements Iterable<number> {
  readonly #bits = new Map<number, number>();
  size = 0;

  add(id: number): void {
    if (this.has(id)) return;
    const key = Math.floor(id / 32);
    this.#bits.set(key, (this.#bits.get(key) ?? 0) | (1 << (id % 32)));
    this.size += 1;
  }

  has(id: number): boolean {
    return ((this.#bits.get(Math.floor(id / 32)) ?? 0) & (1 << (id % 32))) !== 0;
  }

  /** Yields the ids in ascending order. */
  *[Symbol.iterator](): Generator<number, void> {
    for (const key of [...this.#bits.keys()].sort((a, b) => a - b))
      for (let id = key * 32; id < key * 32 + 32; id++) if (this.has(id)) yield id;
  }
}
