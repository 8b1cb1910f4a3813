import { world } from '../../base/world.ts';

/** A token that no other claim has; it names the holder for whoever reads the log. */
export function newLeaseToken(holder: string): string {
  return `${holder}/${world.randomUUID()}`;
}

/** The free slots of each lane; each lane's capacity is asked for once. */
export class FreeSlots {
  readonly #capacity: (prefix: string) => number;
  readonly #free = new Map<string, number>();

  constructor(capacity: (prefix: string) => number) {
    this.#capacity = capacity;
  }

  of(prefix: string): number {
    const free = this.#free.get(prefix) ?? Math.max(0, this.#capacity(prefix));
    this.#free.set(prefix, free);
    return free;
  }

  /** Takes one if there is any. */
  take(prefix: string): boolean {
    const free = this.of(prefix);
    if (free > 0) this.#free.set(prefix, free - 1);
    return free > 0;
  }

  giveBack(prefix: string): void {
    this.#free.set(prefix, this.of(prefix) + 1);
  }
}
