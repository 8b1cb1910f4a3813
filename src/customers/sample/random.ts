/** A seeded source of numbers (mulberry32): the same seed gives the same numbers on every machine. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0;
  }

  /** From 0, inclusive, to 1, exclusive. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** A whole number from the lowest to the highest, inclusive. */
  between(range: readonly [lowest: number, highest: number]): number {
    return range[0] + Math.floor(this.next() * (range[1] - range[0] + 1));
  }

  /** Returns true in a share of the calls, from 0 to 1. */
  chance(share: number): boolean {
    return this.next() < share;
  }

  /** Throws a `RangeError` if the list is empty. */
  pick<T>(list: readonly T[]): T {
    const picked = list[Math.floor(this.next() * list.length)];
    if (picked === undefined) throw new RangeError('there is nothing to pick from');
    return picked;
  }
}
