import type { ClaimOptions } from '../queue/delivery-queue.ts';
import type { SendResult } from '../sender/sender.ts';

/** Attempts under way in this process at most. */
const MAX_IN_FLIGHT = 512;
/** Deliveries of one claim at most. */
const MAX_CLAIMED = 100;

/**
 * Attempts under way at once, for each webhook and for all of its class together. The classes new, slow and failing
 * have a quarter of all slots each: however many webhooks hang, at least a quarter is left for the others.
 */
const LIMITS = {
  proven: { each: 32, together: MAX_IN_FLIGHT },
  new: { each: 8, together: MAX_IN_FLIGHT / 4 },
  slow: { each: 16, together: MAX_IN_FLIGHT / 4 },
  failing: { each: 2, together: MAX_IN_FLIGHT / 4 },
} as const;

/**
 * A lane that was idle has no open connections. It starts with as many attempts as a new one, plus one with each
 * success that this process was on time for: with hundreds of handshakes at once none would be answered in time.
 */
const IDLE_AFTER_MS = 3_000;
const FAILING_AFTER = 2; // failed attempts in a row
const SLOW_MS = 250;
/** Of an attempt; below, more attempts at once cost it less for each. */
const MAX_LATE_MS = 100;
const NEWEST_WEIGHT = 0.2; // of the smoothed duration

type LaneClass = keyof typeof LIMITS;

interface Lane {
  inFlight: number;
  /** Attempts that it may have under way once it is proven. */
  width: number;
  lastStartedMs: number;
  failedInARow: number;
  /** Smoothed; `undefined` before the first attempt's end. */
  durationMs: number | undefined;
  blocked: boolean;
}

/** What one claim may take. */
export type Grant = Pick<ClaimOptions, 'limit' | 'laneCapacity'>;

/** The slots of one process: how many attempts each webhook may have under way, by how its receiver answers. */
export class LaneSlots {
  readonly ramps = new Ramps();
  readonly #lanes = new Map<string, Lane>();
  readonly #byClass: Record<LaneClass, number> = { proven: 0, new: 0, slow: 0, failing: 0 };
  #inFlight = 0;

  get inFlight(): number {
    return this.#inFlight;
  }

  /**
   * What may be claimed now. Each lane's capacity is fixed when it is first asked for and counts in its class, so
   * that one claim never exceeds a limit. `wanted` is how many deliveries of each lane there are, where that is
   * known: then a lane gets no more slots than it needs.
   */
  grant(nowMs: number, wanted?: ReadonlyMap<string, number>): Grant {
    const limit = Math.min(MAX_IN_FLIGHT - this.#inFlight, MAX_CLAIMED);
    const granted = new Map<string, number>();
    const slots = { free: MAX_IN_FLIGHT - this.#inFlight, usedByClass: { ...this.#byClass } };
    const laneCapacity = (prefix: string): number => {
      const known = granted.get(prefix);
      if (known !== undefined) return known;
      const capacity = Math.max(
        0,
        Math.min(this.#capacity(prefix, nowMs, slots), wanted?.get(prefix) ?? Infinity),
      );
      granted.set(prefix, capacity);
      slots.usedByClass[this.#classOf(prefix)] += capacity;
      if (wanted !== undefined) slots.free -= capacity;
      return capacity;
    };
    return { limit, laneCapacity };
  }

  /** A delivery of the lane was claimed. */
  started(prefix: string, nowMs: number): void {
    this.#change(prefix, (lane) => {
      if (isIdle(lane, nowMs)) lane.width = LIMITS.new.each;
      lane.lastStartedMs = nowMs;
      lane.inFlight++;
    });
    this.#inFlight++;
    this.ramps.consume(prefix, nowMs);
  }

  /** Its slot is free again; `attempt` where one was made. */
  ended(prefix: string, attempt?: SendResult): void {
    this.#inFlight--;
    this.#change(prefix, (lane) => {
      lane.inFlight--;
      if (attempt === undefined) return;
      const { ok } = attempt.outcome;
      lane.failedInARow = ok ? 0 : lane.failedInARow + 1;
      if (ok) lane.width = widthAfter(lane.width, attempt.lateMs);
      const receiverMs = attempt.durationMs - attempt.lateMs;
      const before = lane.durationMs ?? receiverMs;
      lane.durationMs = before + NEWEST_WEIGHT * (receiverMs - before);
    });
  }

  /** While it is blocked the lane gets no slots. */
  setBlocked(prefix: string, blocked: boolean): void {
    this.#lane(prefix).blocked = blocked;
  }

  #capacity(
    prefix: string,
    nowMs: number,
    slots: { readonly free: number; readonly usedByClass: Readonly<Record<LaneClass, number>> },
  ): number {
    const lane = this.#lane(prefix);
    if (lane.blocked) return 0;
    const laneClass = this.#classOf(prefix);
    const { each, together } = LIMITS[laneClass];
    const width = isIdle(lane, nowMs) ? LIMITS.new.each : lane.width;
    return Math.min(
      Math.min(each, width) - lane.inFlight,
      together - slots.usedByClass[laneClass],
      slots.free,
      this.ramps.capacity(prefix, nowMs),
    );
  }

  /** Keeps the slots by class right where the change puts the lane in another class. */
  #change(prefix: string, change: (lane: Lane) => void): void {
    const lane = this.#lane(prefix);
    this.#byClass[this.#classOf(prefix)] -= lane.inFlight;
    change(lane);
    this.#byClass[this.#classOf(prefix)] += lane.inFlight;
  }

  #classOf(prefix: string): LaneClass {
    const { failedInARow, durationMs } = this.#lane(prefix);
    if (failedInARow >= FAILING_AFTER) return 'failing';
    if (durationMs === undefined) return 'new';
    return durationMs > SLOW_MS ? 'slow' : 'proven';
  }

  #lane(prefix: string): Lane {
    let lane = this.#lanes.get(prefix);
    if (lane === undefined) {
      lane = {
        inFlight: 0,
        width: LIMITS.new.each,
        lastStartedMs: Number.NEGATIVE_INFINITY,
        failedInARow: 0,
        durationMs: undefined,
        blocked: false,
      };
      this.#lanes.set(prefix, lane);
    }
    return lane;
  }
}

/** One more, unless this process can't keep up with those it has. */
function widthAfter(width: number, lateMs: number): number {
  return lateMs > MAX_LATE_MS ? width : Math.min(width + 1, LIMITS.proven.each);
}

function isIdle(lane: Lane, nowMs: number): boolean {
  return lane.inFlight === 0 && nowMs - lane.lastStartedMs > IDLE_AFTER_MS;
}

/** How many deliveries each lane has among these. */
export function countByLane(deliveries: readonly { readonly prefix: string }[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { prefix } of deliveries) counts.set(prefix, (counts.get(prefix) ?? 0) + 1);
  return counts;
}

const FIRST_PER_SECOND = 10;
const OVER_AFTER_MS = 10_000; // 10,240 a second by then: it no longer matters
const BURST_MS = 100; // unused capacity is kept this long

interface Ramp {
  readonly sinceMs: number;
  /** When the next delivery may start. */
  nextAtMs: number;
}

/**
 * Slow starts of webhooks that were just enabled: 10 deliveries a second at first, twice as many each second,
 * so that a receiver that is just available again is not flooded. Times come from the caller.
 */
export class Ramps {
  readonly #ramps = new Map<string, Ramp>();

  /** `atMs` is when the webhook was enabled. */
  start(prefix: string, atMs: number): void {
    this.#ramps.set(prefix, { sinceMs: atMs, nextAtMs: atMs });
  }

  /** How many deliveries may start now; infinite for a webhook without a ramp. */
  capacity(prefix: string, nowMs: number): number {
    const ramp = this.#current(prefix, nowMs);
    if (ramp === undefined) return Infinity;
    const fromMs = Math.max(ramp.nextAtMs, nowMs - BURST_MS);
    return fromMs > nowMs ? 0 : 1 + Math.floor((nowMs - fromMs) / intervalMs(ramp, nowMs));
  }

  /** One delivery starts now. */
  consume(prefix: string, nowMs: number): void {
    const ramp = this.#current(prefix, nowMs);
    if (ramp === undefined) return;
    ramp.nextAtMs = Math.max(ramp.nextAtMs, nowMs - BURST_MS) + intervalMs(ramp, nowMs);
  }

  /** When the first webhook that has to wait now may continue; `undefined` where none has to. */
  nextAtMs(nowMs: number): number | undefined {
    let next: number | undefined;
    for (const prefix of [...this.#ramps.keys()]) {
      const ramp = this.#current(prefix, nowMs);
      if (ramp === undefined || ramp.nextAtMs <= nowMs) continue;
      next = Math.min(next ?? Infinity, Math.ceil(ramp.nextAtMs));
    }
    return next;
  }

  #current(prefix: string, nowMs: number): Ramp | undefined {
    const ramp = this.#ramps.get(prefix);
    if (ramp === undefined || nowMs - ramp.sinceMs < OVER_AFTER_MS) return ramp;
    this.#ramps.delete(prefix);
    return undefined;
  }
}

function intervalMs({ sinceMs }: Ramp, nowMs: number): number {
  const second = Math.max(0, Math.floor((nowMs - sinceMs) / 1000));
  return 1000 / (FIRST_PER_SECOND * 2 ** second);
}
