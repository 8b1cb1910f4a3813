import { hash } from 'node:crypto';

/** What the table keeps of an id; 0 and 0 for one that it does not know. */
export interface TableEntry {
  count: number;
  timeMs: number;
}

/** A slot: what stands for the id, the time, the count. An id is in one of the slots of its bucket. */
const SLOT_BYTES =
  BigUint64Array.BYTES_PER_ELEMENT + Float64Array.BYTES_PER_ELEMENT + Int32Array.BYTES_PER_ELEMENT;
const BUCKET_SLOTS = 16;
/** With so many for each entry, of a full table less than one bucket in 100,000 is too small. */
const SLOTS_AN_ENTRY = 4;
const LOCK_BYTES = 8;
const UNLOCKED = 0;
const LOCKED = 1;
/** A change takes microseconds: a lock that is held for longer is one of a thread that ended. */
const MAX_LOCK_MS = 2_000;

/** The memory of a table of up to `maxEntries`, which threads may share. What is not used is not resident. */
export function tableMemory(maxEntries: number): SharedArrayBuffer {
  const buckets = Math.ceil((maxEntries * SLOTS_AN_ENTRY) / BUCKET_SLOTS);
  return new SharedArrayBuffer(LOCK_BYTES + buckets * BUCKET_SLOTS * SLOT_BYTES);
}

/**
 * A count and a time for each id, in memory that threads share: what one thread changes, the next one finds, and no change
 * is lost. An entry that is not alive gives way to another of its bucket. Where all of them are alive, which only more
 * ids than the table is for bring about, the one with the earliest time does.
 */
export class SharedTable {
  readonly #lock: Int32Array;
  readonly #tags: BigUint64Array;
  readonly #times: Float64Array;
  readonly #counts: Int32Array;
  readonly #isAlive: (entry: TableEntry) => boolean;
  readonly #maxLockMs: number;

  /** An entry that is not alive is the same as none. Another `maxLockMs` is for tests. */
  constructor(
    memory: SharedArrayBuffer,
    options: { readonly isAlive: (entry: TableEntry) => boolean; readonly maxLockMs?: number },
  ) {
    const slots = (memory.byteLength - LOCK_BYTES) / SLOT_BYTES;
    this.#lock = new Int32Array(memory, 0, 1);
    this.#tags = new BigUint64Array(memory, LOCK_BYTES, slots);
    this.#times = new Float64Array(memory, LOCK_BYTES + this.#tags.byteLength, slots);
    this.#counts = new Int32Array(memory, LOCK_BYTES + 2 * this.#tags.byteLength, slots);
    this.#isAlive = options.isAlive;
    this.#maxLockMs = options.maxLockMs ?? MAX_LOCK_MS;
  }

  /** Changes one entry, while no other thread does. Throws where the lock was not released for two seconds. */
  change<T>(id: string, work: (entry: TableEntry) => T): T {
    const digest = hash('sha256', id, 'buffer');
    this.#acquire();
    try {
      const slot = this.#slotOf(digest);
      const entry = this.#entry(slot);
      const result = work(entry);
      this.#counts[slot] = entry.count;
      this.#times[slot] = entry.timeMs;
      return result;
    } finally {
      this.#release();
    }
  }

  #slotOf(digest: Buffer): number {
    const tag = digest.readBigUInt64LE(0);
    const first = (digest.readUInt32LE(8) % (this.#tags.length / BUCKET_SLOTS)) * BUCKET_SLOTS;
    const bucket = Array.from({ length: BUCKET_SLOTS }, (_, index) => first + index);
    const known = bucket.find((slot) => this.#tags[slot] === tag);
    if (known !== undefined) return known;
    const dead = bucket.find((slot) => !this.#isAlive(this.#entry(slot)));
    const slot = dead ?? bucket.reduce((a, b) => (this.#entry(b).timeMs < this.#entry(a).timeMs ? b : a));
    this.#tags[slot] = tag;
    this.#counts[slot] = 0;
    this.#times[slot] = 0;
    return slot;
  }

  #entry(slot: number): TableEntry {
    return { count: this.#counts[slot] ?? 0, timeMs: this.#times[slot] ?? 0 };
  }

  #acquire(): void {
    while (Atomics.compareExchange(this.#lock, 0, UNLOCKED, LOCKED) !== UNLOCKED) {
      if (Atomics.wait(this.#lock, 0, LOCKED, this.#maxLockMs) === 'timed-out') {
        throw new Error('a table that threads share stayed locked: a thread ended while it changed it');
      }
    }
  }

  #release(): void {
    Atomics.store(this.#lock, 0, UNLOCKED);
    Atomics.notify(this.#lock, 0, 1);
  }
}
