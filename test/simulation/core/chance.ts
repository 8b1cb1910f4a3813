/** Random numbers from a seed, the same on every machine. */
export class Chance {
  readonly #seed: string;
  #state: [number, number, number, number];

  constructor(seed: string) {
    this.#seed = seed;
    let h = 1_779_033_703 ^ seed.length;
    const word = (): number => {
      h = Math.imul(h ^ (h >>> 16), 2_246_822_507);
      h = Math.imul(h ^ (h >>> 13), 3_266_489_909);
      h ^= h >>> 16;
      return h >>> 0;
    };
    for (const letter of seed) {
      h = Math.imul(h ^ letter.charCodeAt(0), 3_432_918_353);
      h = (h << 13) | (h >>> 19);
    }
    this.#state = [word(), word(), word(), word()];
    for (let n = 0; n < 12; n++) this.next();
  }

  /** Returns another sequence. Drawing from it does not change this one. */
  fork(name: string): Chance {
    return new Chance(`${this.#seed}/${name}`);
  }

  /** Returns a number from 0 to below 1. */
  next(): number {
    let [a, b, c, d] = this.#state;
    const t = (((a + b) | 0) + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (c << 21) | (c >>> 11);
    c = (c + t) | 0;
    this.#state = [a, b, c, d];
    return (t >>> 0) / 4_294_967_296;
  }

  /** Returns a whole number from 0 to below `below`. */
  int(below: number): number {
    return Math.floor(this.next() * below);
  }

  between(from: number, to: number): number {
    return from + this.int(to - from + 1);
  }

  is(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(list: readonly T[]): T {
    const found = list[this.int(list.length)];
    if (found === undefined) throw new Error('nothing to pick from');
    return found;
  }

  bytes(count: number): Buffer {
    return Buffer.from(Array.from({ length: count }, () => this.int(256)));
  }

  uuid(): string {
    const hex = this.bytes(16).toString('hex');
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`;
  }
}
