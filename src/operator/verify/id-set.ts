/** A set of ids. Since ids nearly always follow one another, 32 of them share an entry of a map. */
export class IdSet {
  readonly #bits = new Map<number, number>();

  add(id: number): void {
    const key = Math.floor(id / 32);
    this.#bits.set(key, (this.#bits.get(key) ?? 0) | (1 << (id % 32)));
  }

  has(id: number): boolean {
    return ((this.#bits.get(Math.floor(id / 32)) ?? 0) & (1 << (id % 32))) !== 0;
  }
}
