const FIRST_CAPACITY = 1_024;

/** A set of numbers that takes eight bytes for each: as many as there are transactions. They are added first. */
export class IdSet {
  #ids = new Float64Array(FIRST_CAPACITY);
  #count = 0;
  #isSorted = true;
  /** After the id that was found last. */
  #next = 0;

  add(id: number): void {
    if (this.#count === this.#ids.length) {
      const larger = new Float64Array(this.#ids.length * 2);
      larger.set(this.#ids);
      this.#ids = larger;
    }
    if (this.#count > 0 && id < (this.#ids[this.#count - 1] as number)) this.#isSorted = false;
    this.#ids[this.#count++] = id;
  }

  /** The ids as they were added; `addAll` of another set takes them. */
  values(): Float64Array {
    return this.#ids.slice(0, this.#count);
  }

  addAll(ids: Float64Array): void {
    for (const id of ids) this.add(id);
  }

  has(id: number): boolean {
    if (!this.#isSorted) {
      this.#ids.subarray(0, this.#count).sort();
      this.#isSorted = true;
    }
    // Whoever walks through ids in order asks for the next one nearly always.
    if (this.#ids[this.#next] === id && this.#next < this.#count) {
      this.#next += 1;
      return true;
    }
    let from = 0;
    let to = this.#count;
    while (from < to) {
      const middle = (from + to) >>> 1;
      if ((this.#ids[middle] as number) < id) from = middle + 1;
      else to = middle;
    }
    if (from >= this.#count || this.#ids[from] !== id) return false;
    this.#next = from + 1;
    return true;
  }
}
