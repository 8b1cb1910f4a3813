import type { ClaimOptions } from '../queue/delivery-queue.ts';
import type { SendResult } from '../sender/sender.ts';
import { HostPace, type RoomAsked } from './host-pace.ts';
import { LaneGate } from './lane-gate.ts';

/** Attempts under way in this process at most. */
const MAX_UNDER_WAY = 512;
/** Deliveries of one claim at most. */
const MAX_CLAIMED = 100;
const MAX_OF_LANE = 32;
/** For a webhook whose last attempts failed, whatever its receiver could do before. */
const MAX_OF_FAILING_LANE = 2;
const FAILING_AFTER = 2; // failed attempts in a row
/** What was learned of lanes and hosts is dropped after so long without an attempt. */
const FORGOTTEN_MS = 600_000;
/** How often a lane that another process works on is looked at: that process may have ended. */
const LOOK_MS = 1_000;

/**
 * How many attempts may be under way to receivers that fail; to those and the ones that are slow or not known yet; and
 * to all. However many receivers hang, a quarter of all is left for new ones, and another quarter for quick ones.
 */
const MAX_TOGETHER = {
  failing: MAX_UNDER_WAY / 2,
  unproven: (MAX_UNDER_WAY * 3) / 4,
  quick: MAX_UNDER_WAY,
} as const;
type Standing = keyof typeof MAX_TOGETHER;
/** Attempts under way by standing. */
type Counts = Record<Standing, number>;

/** What one claim may take. */
export interface Grant extends Pick<ClaimOptions, 'limit' | 'laneCapacity'> {
  /** How long until time alone lets more deliveries of the lanes start that were asked for; may be infinite. */
  readonly waitMs: () => number;
  /** How many of the lanes that were asked for got nothing. */
  readonly waiting: () => number;
}

export interface LaneTerms {
  /** Its webhook's URL; `undefined` where it has none. */
  readonly url: string | undefined;
  /** The rate that the operator allows; infinite: any. */
  readonly perSecond: number;
}

export interface PaceOptions {
  readonly termsOf: (prefix: string) => LaneTerms;
  /** Whether this process works on the host's deliveries, and not another one. */
  readonly owns: (host: string) => boolean;
  /** The open connections to a host, idle or in use, whose handshake is complete. */
  readonly openConnections: (host: string) => number;
}

interface Lane {
  readonly prefix: string;
  terms: LaneTerms;
  host: HostPace;
  readonly gate: LaneGate;
  underWay: number;
  failedInARow: number;
  /** When the first of them began; `undefined` while none has failed. */
  failingSinceMs: number | undefined;
  isBlocked: boolean;
  /** When an attempt started, or it was looked at first. */
  usedAtMs: number | undefined;
}

/** One attempt's place among those under way. */
export interface Slot {
  /** How many others were under way at the host when it was claimed. */
  readonly others: number;
  readonly startedAtMs: number;
  readonly lane: Lane;
  readonly host: HostPace;
  readonly standing: Standing;
  readonly isApart: boolean;
}

/** How an attempt ended, as far as the pace depends on it. */
export interface AttemptEnd {
  readonly result: SendResult;
  /** How long the receiver asked to wait; `null` where it did not. */
  readonly askedMs: number | null;
}

/**
 * How many attempts may be under way: at each host as many as it answers in time, for each webhook as its receiver and
 * the operator ask, and in this process. All times are milliseconds on one clock that never steps.
 */
export class Pace {
  readonly #options: PaceOptions;
  readonly #hosts = new Map<string, HostPace>();
  readonly #lanes = new Map<string, Lane>();
  readonly #underWay: Counts = { failing: 0, unproven: 0, quick: 0 };
  #claims = 0;
  #lookedAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: PaceOptions) {
    this.#options = options;
  }

  /**
   * What may be claimed now. What it grants a lane counts for all others that are asked for later, so that one claim
   * never exceeds a limit. `deliveries` are those that are to start, where that is known.
   */
  grant(nowMs: number, deliveries?: readonly { readonly prefix: string }[]): Grant {
    const wanted = deliveries && Map.groupBy(deliveries, ({ prefix }) => prefix);
    const isOfDue = wanted === undefined;
    if (isOfDue) this.#claims += 1;
    this.#forget(nowMs);
    const claim = { number: this.#claims, isOfDue };
    const granted = new Map<string, number>();
    const takenOf = new Map<HostPace, { shared: number; apart: number }>();
    const counts = { ...this.#underWay }; // with what is granted
    let [nextAtMs, waiting] = [Infinity, 0];
    const laneCapacity = (prefix: string): number => {
      const known = granted.get(prefix);
      if (known !== undefined) return known;
      const lane = this.#lane(prefix);
      const taken = takenOf.get(lane.host) ?? { shared: 0, apart: 0 };
      const room = this.#room(lane, counts, { taken, claim, nowMs });
      const capacity = Math.min(room, wanted?.get(prefix)?.length ?? Infinity);
      granted.set(prefix, capacity);
      takenOf.set(lane.host, taken);
      taken[isApart(lane) ? 'apart' : 'shared'] += capacity;
      counts[standingOf(lane)] += capacity;
      if (room === 0) {
        nextAtMs = Math.min(nextAtMs, this.#nextAtMs(lane, nowMs));
        waiting += 1;
      }
      return capacity;
    };
    const limit = Math.min(roomOf('quick', this.#underWay), MAX_CLAIMED);
    return { limit, laneCapacity, waitMs: () => Math.max(0, nextAtMs - nowMs), waiting: () => waiting };
  }

  /** A delivery of the lane was claimed. */
  start(prefix: string, nowMs: number): Slot {
    const lane = this.#lane(prefix);
    const { host, gate, terms } = lane;
    const of = { lane, host, startedAtMs: nowMs, standing: standingOf(lane), isApart: isApart(lane) };
    const slot = { ...of, others: host.underWay };
    lane.underWay += 1;
    lane.usedAtMs = nowMs;
    this.#underWay[slot.standing] += 1;
    if (slot.isApart) host.startApart();
    else host.start(prefix, nowMs);
    gate.started({ perSecond: terms.perSecond, nowMs });
    return slot;
  }

  /** Its place is free again; `attempt` where one was made. */
  end(slot: Slot, nowMs: number, attempt?: AttemptEnd): void {
    const { lane, host, startedAtMs } = slot;
    const ended = { startedAtMs, nowMs };
    lane.underWay -= 1;
    this.#underWay[slot.standing] -= 1;
    // A receiver that is asked for one thing at a time already can only mean the rate.
    const isRate = attempt?.result.outcome.answer?.status === 429 || host.underWay === 1;
    if (slot.isApart) host.endApart();
    else if (attempt === undefined) host.end(ended);
    else if (attempt.askedMs === null) host.end(ended, attempt.result);
    else if (isRate) host.end(ended);
    else host.refuse(ended);
    if (attempt === undefined) return;
    const { result, askedMs } = attempt;
    if (askedMs !== null) {
      lane.gate.refused(askedMs, { ...ended, isRate });
      return;
    }
    const { ok } = result.outcome;
    lane.gate.accepted();
    lane.failedInARow = ok ? 0 : lane.failedInARow + 1;
    lane.failingSinceMs = ok ? undefined : (lane.failingSinceMs ?? startedAtMs);
  }

  /** The webhook was enabled `agoMs` ago: its rate grows from ten a second. */
  enabled(prefix: string, agoMs: number, nowMs: number): void {
    this.#lane(prefix).gate.enabled(nowMs - agoMs);
  }

  /** While it is blocked the lane gets no room. */
  setBlocked(prefix: string, isBlocked: boolean): void {
    this.#lane(prefix).isBlocked = isBlocked;
  }

  #room(lane: Lane, counts: Counts, asked: RoomAsked): number {
    const { prefix, host, gate, underWay, terms } = lane;
    if (lane.isBlocked || !this.#options.owns(host.name)) return 0;
    const standing = standingOf(lane);
    const most = standing === 'failing' ? MAX_OF_FAILING_LANE : MAX_OF_LANE;
    const byGate = gate.room(underWay, { perSecond: terms.perSecond, nowMs: asked.nowMs });
    const own = Math.min(most - underWay, byGate, roomOf(standing, counts));
    if (own <= 0) return 0;
    return Math.min(own, isApart(lane) ? host.roomApart(asked) : host.room(prefix, asked));
  }

  /** A process may deliver to a hundred thousand webhooks in the course of a day. */
  #forget(nowMs: number): void {
    if (nowMs - this.#lookedAtMs < FORGOTTEN_MS / 10) return;
    this.#lookedAtMs = nowMs;
    for (const lane of this.#lanes.values()) {
      lane.usedAtMs ??= nowMs;
      const isUsed = lane.underWay > 0 || lane.isBlocked || nowMs - lane.usedAtMs <= FORGOTTEN_MS;
      if (!isUsed) this.#lanes.delete(lane.prefix);
    }
    const used = new Set([...this.#lanes.values()].map(({ host }) => host));
    for (const [name, host] of this.#hosts) if (!used.has(host)) this.#hosts.delete(name);
  }

  /** When time alone may give the lane room. */
  #nextAtMs({ host, gate, terms }: Lane, nowMs: number): number {
    if (!this.#options.owns(host.name)) return nowMs + LOOK_MS;
    const gateAtMs = gate.nextAtMs(terms.perSecond, nowMs);
    return gateAtMs > nowMs ? gateAtMs : host.nextAtMs(nowMs);
  }

  #lane(prefix: string): Lane {
    const terms = this.#options.termsOf(prefix);
    const known = this.#lanes.get(prefix);
    if (known === undefined) {
      const host = this.#host(prefix, terms);
      const lane = {
        prefix,
        terms,
        host,
        gate: new LaneGate(),
        underWay: 0,
        failedInARow: 0,
        failingSinceMs: undefined,
        isBlocked: false,
        usedAtMs: undefined,
      };
      this.#lanes.set(prefix, lane);
      return lane;
    }
    if (known.terms.url !== terms.url) known.host = this.#host(prefix, terms);
    known.terms = terms;
    return known;
  }

  #host(prefix: string, { url }: LaneTerms): HostPace {
    const name = (url === undefined ? undefined : URL.parse(url)?.origin) ?? prefix;
    let host = this.#hosts.get(name);
    if (host === undefined) {
      host = new HostPace(name, () => this.#options.openConnections(name));
      this.#hosts.set(name, host);
    }
    return host;
  }
}

function isApart(lane: Lane): boolean {
  return standingOf(lane) === 'failing' && lane.host.isApart(lane.failingSinceMs);
}

function standingOf({ failedInARow, host }: Lane): Standing {
  if (failedInARow >= FAILING_AFTER) return 'failing';
  return host.isQuick ? 'quick' : 'unproven';
}

/** How many more of the standing there may be. */
function roomOf(standing: Standing, { failing, unproven, quick }: Counts): number {
  const all = MAX_TOGETHER.quick - failing - unproven - quick;
  if (standing === 'quick') return all;
  const ofUnproven = Math.min(all, MAX_TOGETHER.unproven - failing - unproven);
  return standing === 'unproven' ? ofUnproven : Math.min(ofUnproven, MAX_TOGETHER.failing - failing);
}
