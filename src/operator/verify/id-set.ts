/** A set of numbers that takes eight bytes for each: as many as there are transactions. They are added first. */
export class IdSet {
  #ids: number[] = [];
  /** While none is added any more. */
  #sorted: Float64Array | undefined;

  add(id: number): void {
    this.#ids.push(id);
    this.#sorted = undefined;
  }

  /** The ids as they were added; `addAll` of another set takes them. */
  values(): Float64Array {
    return Float64Array.from(this.#ids);
  }

  addAll(ids: Float64Array): void {
    for (const id of ids) this.add(id);
  }

  has(id: number): boolean {
    this.#sorted ??= this.values().sort();
    let [from, to] = [0, this.#sorted.length];
    while (from < to) {
      const middle = (from + to) >>> 1;
      if ((this.#sorted[middle] ?? 0) < id) from = middle + 1;
      else to = middle;
    }
    return this.#sorted[from] === id;
  }
}
