import { AsyncLocalStorage } from 'node:async_hooks';

/** A simulated process, for which time passes. Timers of a process that has ended never fire. */
export interface Owner {
  readonly name: string;
  /** True if it waits for work again and again, so that its short timers are heartbeats. */
  readonly isService: boolean;
  isAlive: boolean;
  /** The time before which it does nothing, because it is slow. */
  pausedUntilMs: number;
  /** How far its clock is ahead, in milliseconds. */
  clockMs: number;
}

/** The process to which the running code belongs; none for the world around the processes. */
export const owners = new AsyncLocalStorage<Owner | undefined>();

/** Shorter timers are heartbeats and waits of an idle process, which a leap skips. */
const HEARTBEAT_MS = 5_000;
/** Timers up to this look for something to do, which `due` knows anyway. */
const LOOK_MS = 60_000;
/** A leap ends this long before the next planned event, so that everyone has caught up by then. */
const AWAKE_MS = 6_000;
/** After this long with nothing but heartbeats, nothing happens before the next planned event. */
const QUIET_MS = 3_000;
/** The maximum of timers in one instant. More means a loop that never waits. */
const MAX_IN_AN_INSTANT = 200_000;

/** A timer as Node returns it. */
export class Timer {
  atMs: number;
  readonly order: number;
  readonly delayMs: number;
  readonly owner: Owner | undefined;
  isOver = false;
  readonly run: () => void;

  constructor(atMs: number, order: number, delayMs: number, owner: Owner | undefined, run: () => void) {
    this.atMs = atMs;
    this.order = order;
    this.delayMs = delayMs;
    this.owner = owner;
    this.run = run;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return true;
  }
}

/** Virtual time, which passes from one timer to the next. */
export class Timeline {
  nowMs: number;
  /** The number of timers that fired, and the time that leaps skipped. */
  fired = 0;
  leaptMs = 0;
  /** Returns when something stored is due, for which there may be no timer. */
  due: () => number = () => Number.POSITIVE_INFINITY;
  /** The time at which something other than a heartbeat last happened. */
  #activeAtMs: number;
  #heap: Timer[] = [];
  #order = 0;

  constructor(startMs: number) {
    this.nowMs = startMs;
    this.#activeAtMs = startMs;
  }

  /** Notes that something changed. */
  active(): void {
    this.#activeAtMs = Math.max(this.#activeAtMs, this.nowMs);
  }

  /** Sets a timer for the process whose code is running. */
  set(delayMs: number, run: () => void): Timer {
    return this.setFor(owners.getStore(), delayMs, run);
  }

  setFor(owner: Owner | undefined, delayMs: number, run: () => void): Timer {
    const wait = Number.isFinite(delayMs) && delayMs > 0 ? delayMs : 0;
    const timer = new Timer(this.nowMs + wait, this.#order++, wait, owner, run);
    this.#push(timer);
    return timer;
  }

  clear(timer: Timer | undefined): void {
    if (timer !== undefined) timer.isOver = true;
  }

  pause(delayMs: number, owner = owners.getStore()): Promise<void> {
    return new Promise((resolve) => void this.setFor(owner, delayMs, resolve));
  }

  /** Lets time pass until `untilMs`, or until `until` returns true at the end of an instant. */
  async run(untilMs: number, until: () => boolean = () => false): Promise<void> {
    await settled();
    let instant = 0;
    while (!until()) {
      this.#leap(untilMs);
      const next = this.#heap[0];
      if (next === undefined || next.atMs > untilMs) {
        this.nowMs = untilMs;
        return;
      }
      this.#pop();
      if (next.isOver || next.owner?.isAlive === false) continue;
      if (next.atMs > this.nowMs) instant = 0;
      if (++instant > MAX_IN_AN_INSTANT)
        throw new Error(`a loop at ${this.nowMs} of ${next.owner?.name}: ${next.run}`);
      this.nowMs = Math.max(this.nowMs, next.atMs);
      if (next.owner !== undefined && next.owner.pausedUntilMs > this.nowMs) {
        next.atMs = next.owner.pausedUntilMs;
        this.#activeAtMs = Math.max(this.#activeAtMs, next.atMs); // its work in progress continues then
        this.#push(next);
        continue;
      }
      next.isOver = true;
      this.fired += 1;
      owners.run(next.owner, next.run);
      await settled();
    }
  }

  /** Leaps to the next planned event if nobody does anything. Heartbeats stand still meanwhile. */
  #leap(untilMs: number): void {
    if (this.nowMs - this.#activeAtMs < QUIET_MS) return;
    let nextMs = Math.min(untilMs, this.due());
    for (const { isOver, owner, delayMs, atMs } of this.#heap)
      if (!isOver && atMs < nextMs && owner?.isAlive !== false && (delayMs > LOOK_MS || !owner?.isService))
        nextMs = atMs;
    const leapMs = Math.floor(nextMs - AWAKE_MS - this.nowMs);
    this.#activeAtMs = Math.max(this.#activeAtMs, this.nowMs - QUIET_MS + 1_000); // looks again a second later
    if (leapMs < 2 * AWAKE_MS) return;
    const timers = this.#heap.filter(({ isOver, owner }) => !isOver && owner?.isAlive !== false);
    for (const timer of timers)
      if (timer.owner?.isService && timer.delayMs <= HEARTBEAT_MS) timer.atMs += leapMs;
    this.nowMs += leapMs;
    this.leaptMs += leapMs;
    this.#activeAtMs = this.nowMs;
    this.#heap = [];
    for (const timer of timers) this.#push(timer);
  }

  #push(timer: Timer): void {
    const heap = this.#heap;
    let at = heap.push(timer) - 1;
    while (at > 0) {
      const up = (at - 1) >> 1;
      const parent = heap[up] as Timer;
      if (!isBefore(timer, parent)) break;
      heap[at] = parent;
      at = up;
    }
    heap[at] = timer;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Timer, heap[child] as Timer)) child += 1;
      if (!isBefore(heap[child] as Timer, last)) break;
      heap[at] = heap[child] as Timer;
      at = child;
    }
    heap[at] = last;
  }
}

function isBefore(a: Timer, b: Timer): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

/** Resolves when everything that does not wait for time has happened: all microtasks and ticks of Node. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
