import { hash } from 'node:crypto';

/** What the table keeps of an id; 0 and 0 for one that it does not know. */
export interface TableEntry {
  count: number;
  timeMs: number;
}

interface KeptEntry extends TableEntry {
  readonly seen: number;
  readonly digest: readonly number[];
}

/** The header, in 32-bit words. */
const LOCK = 0;
const SLOTS = 1;
const USED = 2;
const SEEN = 3;
const HEADER_BYTES = 32;
/** A slot: the time (a double), the count, when it was last seen (0: it is empty), and 128 bits that stand for the id. */
const SLOT_BYTES = 32;
const SLOT_WORDS = SLOT_BYTES / Int32Array.BYTES_PER_ELEMENT;
const SLOT_DOUBLES = SLOT_BYTES / Float64Array.BYTES_PER_ELEMENT;
const COUNT_WORD = 2;
const SEEN_WORD = 3;
const DIGEST_WORD = 4;
const DIGEST_WORDS = 4;

const MIN_SLOTS = 64;
/** At most half of the slots are used, so that a search ends soon. */
const SLOTS_AN_ENTRY = 4;
/** What is kept of a table that is full, so that it is not full again at once. */
const KEPT_OF_FULL = 7 / 8;
const UNLOCKED = 0;
const LOCKED = 1;
const AWAITED = 2;
/** A change takes microseconds, a larger table milliseconds: a lock that is held for longer is one of a thread that ended. */
const MAX_LOCK_MS = 2_000;

/** The memory of a table of up to `maxEntries`. It grows as they come, and threads may share it. */
export function tableMemory(maxEntries: number): SharedArrayBuffer {
  const bytes = (slots: number): number => HEADER_BYTES + slots * SLOT_BYTES;
  const maxByteLength = bytes(slotsFor(maxEntries));
  const memory = new SharedArrayBuffer(bytes(MIN_SLOTS), { maxByteLength });
  new Int32Array(memory)[SLOTS] = MIN_SLOTS;
  return memory;
}

/**
 * A count and a time for each id, in memory that threads share: what one thread changes, the next one finds, and no change
 * is lost. Where it holds `maxEntries` that are alive, those that were not seen for longest are forgotten.
 */
export class SharedTable {
  readonly #memory: SharedArrayBuffer;
  readonly #words: Int32Array;
  readonly #doubles: Float64Array;
  readonly #maxEntries: number;
  readonly #isAlive: (entry: TableEntry) => boolean;
  readonly #maxLockMs: number;

  /** All threads give the same options. An entry that is not alive is the same as none. */
  constructor(
    memory: SharedArrayBuffer,
    options: {
      readonly maxEntries: number;
      readonly isAlive: (entry: TableEntry) => boolean;
      /** Another time, for tests. */
      readonly maxLockMs?: number;
    },
  ) {
    this.#memory = memory;
    this.#words = new Int32Array(memory);
    this.#doubles = new Float64Array(memory);
    this.#maxEntries = options.maxEntries;
    this.#isAlive = options.isAlive;
    this.#maxLockMs = options.maxLockMs ?? MAX_LOCK_MS;
  }

  /** Changes one entry, while no other thread does. Throws where the lock was not released for two seconds. */
  change<T>(id: string, work: (entry: TableEntry) => T): T {
    const digest = digestOf(id);
    this.#lock();
    try {
      const slot = this.#slotOf(digest);
      const first = wordOf(slot);
      const entry = { count: this.#word(first + COUNT_WORD), timeMs: this.#doubles[doubleOf(slot)] ?? 0 };
      const result = work(entry);
      this.#words[first + COUNT_WORD] = entry.count;
      this.#doubles[doubleOf(slot)] = entry.timeMs;
      this.#words[first + SEEN_WORD] = this.#nextSeen();
      return result;
    } finally {
      this.#unlock();
    }
  }

  #slotOf(digest: readonly number[]): number {
    const slot = this.#find(digest);
    if (this.#word(wordOf(slot) + SEEN_WORD) !== 0) return slot;
    const used = this.#word(USED);
    if (used < Math.min(this.#maxEntries, this.#word(SLOTS) / 2)) return this.#take(slot, digest);
    this.#rebuild();
    return this.#take(this.#find(digest), digest);
  }

  /** The slot of the id, or the empty one where it belongs. */
  #find(digest: readonly number[]): number {
    const last = this.#word(SLOTS) - 1; // a power of two less one
    for (let slot = (digest[0] ?? 0) & last; ; slot = (slot + 1) & last) {
      const first = wordOf(slot);
      if (this.#word(first + SEEN_WORD) === 0) return slot;
      if (digest.every((word, index) => this.#word(first + DIGEST_WORD + index) === word)) return slot;
    }
  }

  #take(slot: number, digest: readonly number[]): number {
    this.#words.set(digest, wordOf(slot) + DIGEST_WORD);
    this.#words[wordOf(slot) + SEEN_WORD] = this.#nextSeen();
    this.#words[USED] = this.#word(USED) + 1;
    return slot;
  }

  /** Keeps what is alive, in more slots if it is much. */
  #rebuild(): void {
    const alive = this.#entries().filter((entry) => this.#isAlive(entry));
    const most = Math.floor(this.#maxEntries * KEPT_OF_FULL);
    const kept = alive.length <= most ? alive : alive.sort((a, b) => b.seen - a.seen).slice(0, most);
    const slots = Math.max(this.#word(SLOTS), slotsFor(kept.length + 1));
    const bytes = HEADER_BYTES + slots * SLOT_BYTES;
    if (bytes > this.#memory.byteLength) this.#memory.grow(bytes);
    this.#words.fill(0, HEADER_BYTES / Int32Array.BYTES_PER_ELEMENT);
    this.#words[SLOTS] = slots;
    this.#words[USED] = 0;
    for (const { digest, seen, count, timeMs } of kept) {
      const slot = this.#take(this.#find(digest), digest);
      this.#words[wordOf(slot) + COUNT_WORD] = count;
      this.#words[wordOf(slot) + SEEN_WORD] = seen;
      this.#doubles[doubleOf(slot)] = timeMs;
    }
  }

  #entries(): KeptEntry[] {
    const entries: KeptEntry[] = [];
    for (let slot = 0; slot < this.#word(SLOTS); slot++) {
      const first = wordOf(slot);
      const seen = this.#word(first + SEEN_WORD);
      if (seen === 0) continue;
      const digest = [...this.#words.subarray(first + DIGEST_WORD, first + DIGEST_WORD + DIGEST_WORDS)];
      const count = this.#word(first + COUNT_WORD);
      entries.push({ seen, digest, count, timeMs: this.#doubles[doubleOf(slot)] ?? 0 });
    }
    return entries;
  }

  /** Grows with each change. After two billion it begins again, and the order of those before is lost. */
  #nextSeen(): number {
    const next = Math.max(1, (this.#word(SEEN) + 1) | 0);
    this.#words[SEEN] = next;
    return next;
  }

  #word(index: number): number {
    return this.#words[index] ?? 0;
  }

  #lock(): void {
    if (Atomics.compareExchange(this.#words, LOCK, UNLOCKED, LOCKED) === UNLOCKED) return;
    while (Atomics.exchange(this.#words, LOCK, AWAITED) !== UNLOCKED) {
      if (Atomics.wait(this.#words, LOCK, AWAITED, this.#maxLockMs) === 'timed-out') {
        throw new Error('a table that threads share stayed locked: a thread ended while it changed it');
      }
    }
  }

  #unlock(): void {
    if (Atomics.exchange(this.#words, LOCK, UNLOCKED) === AWAITED) Atomics.notify(this.#words, LOCK, 1);
  }
}

function slotsFor(entries: number): number {
  return Math.max(MIN_SLOTS, 2 ** Math.ceil(Math.log2(entries * SLOTS_AN_ENTRY)));
}

function digestOf(id: string): number[] {
  const bytes = hash('sha256', id, 'buffer');
  return Array.from({ length: DIGEST_WORDS }, (_, index) => bytes.readInt32LE(index * 4));
}

function wordOf(slot: number): number {
  return HEADER_BYTES / Int32Array.BYTES_PER_ELEMENT + slot * SLOT_WORDS;
}

function doubleOf(slot: number): number {
  return HEADER_BYTES / Float64Array.BYTES_PER_ELEMENT + slot * SLOT_DOUBLES;
}
