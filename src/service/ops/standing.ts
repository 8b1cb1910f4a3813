import type { Position } from '../../event-store/event-store.ts';

const KNOWN_UNTIL = 0;
const MUST_REACH = 1;
const STOPPING = 2;
const FIELDS = 3;
const NO_POSITION = -1n;

/**
 * What all threads of a process must know to judge access, in memory that they share: until when (milliseconds since the boot)
 * other processes count this one as alive, how far its directories must be, and whether it stops. The main thread
 * writes it.
 */
export class Standing {
  readonly memory: SharedArrayBuffer;
  readonly #fields: BigInt64Array;

  constructor(memory?: SharedArrayBuffer) {
    this.memory = memory ?? new SharedArrayBuffer(FIELDS * BigInt64Array.BYTES_PER_ELEMENT);
    this.#fields = new BigInt64Array(this.memory);
    if (memory === undefined) this.mustReach(undefined);
  }

  knownUntil(ms: number): void {
    Atomics.store(this.#fields, KNOWN_UNTIL, BigInt(ms));
  }

  isKnown(nowMs: number): boolean {
    return BigInt(nowMs) < Atomics.load(this.#fields, KNOWN_UNTIL);
  }

  /** `undefined`: it is not known yet. */
  mustReach(position: Position | undefined): void {
    Atomics.store(this.#fields, MUST_REACH, position === undefined ? NO_POSITION : BigInt(position));
  }

  /** Whether a directory at this position has what it must have. */
  hasReached(position: Position): boolean {
    const wanted = Atomics.load(this.#fields, MUST_REACH);
    return wanted !== NO_POSITION && BigInt(position) >= wanted;
  }

  /** Whether commands that wait until everybody has applied a change wait for this process, and it has what it must have. */
  isMember(nowMs: number, position: Position): boolean {
    return this.isKnown(nowMs) && this.hasReached(position);
  }

  stopping(): void {
    Atomics.store(this.#fields, STOPPING, 1n);
  }

  get isStopping(): boolean {
    return Atomics.load(this.#fields, STOPPING) === 1n;
  }
}
