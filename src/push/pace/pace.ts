import type { ClaimOptions } from '../queue/delivery-queue.ts';
import type { SendResult } from '../sender/timed-send.ts';
import { HostPace, type HostSlot, type RoomAsked } from './host-pace.ts';
import { LaneAtHost } from './lane-at-host.ts';
import { LaneRate } from './lane-rate.ts';

/** The most attempts under way in this process. */
const MAX_UNDER_WAY = 512;
/** The most deliveries of one claim. */
const MAX_CLAIMED = 100;
/** The most of one webhook. With more, ten quick receivers on one machine take all of this process's time, and fewer deliveries a second. */
const MAX_OF_LANE = 32;
/** The limit of a webhook whose last attempts have failed, whatever its receiver could do before. */
const MAX_OF_FAILING_LANE = 2;
const FAILING_AFTER = 2; // failed attempts in a row
/** Lanes and hosts are forgotten after this long without an attempt. */
const FORGOTTEN_MS = 600_000;
/** How often lanes of other processes are checked: their process may have ended. */
const LOOK_MS = 1_000;

/**
 * How many attempts may be under way to failing receivers; to these and to slow or unknown ones; and to all. However many
 * receivers hang, a quarter of all attempts is left for new receivers, and another quarter for quick ones.
 */
const MAX_TOGETHER = {
  failing: MAX_UNDER_WAY / 2,
  unproven: (MAX_UNDER_WAY * 3) / 4,
  quick: MAX_UNDER_WAY,
} as const;
type Reputation = keyof typeof MAX_TOGETHER;
/** Attempts under way, by reputation. */
type Counts = Record<Reputation, number>;

/** What one claim may take. */
interface Grant extends Pick<ClaimOptions, 'limit' | 'laneCapacity'> {
  /** How long until more deliveries of the requested lanes may start without anything else happening; may be infinite. */
  readonly waitMs: () => number;
  /** How many of the requested lanes got nothing. */
  readonly waiting: () => number;
}

interface LaneTerms {
  /** The webhook's URL; `undefined` if there is none. */
  readonly url: string | undefined;
  /** The operator's limit, which may be infinite. */
  readonly perSecond: number;
}

export interface PaceOptions {
  readonly termsOf: (prefix: string) => LaneTerms;
  /** Whether this process, and no other, delivers to the host. */
  readonly owns: (host: string) => boolean;
  /** The number of open connections to a host whose handshake is complete, idle or in use. */
  readonly openConnections: (host: string) => number;
  /** How long nothing may be sent to a host because the operator's proxy has failed. */
  readonly proxyWaitMs: (host: string) => number;
}

interface Lane {
  readonly prefix: string;
  terms: LaneTerms;
  host: HostPace;
  atHost: LaneAtHost;
  readonly rate: LaneRate;
  underWay: number;
  failedInARow: number;
  isBlocked: boolean;
  /** When the last attempt started, or the lane was first checked. */
  usedAtMs: number | undefined;
}

/** The place of an attempt among those under way. */
export interface Slot extends HostSlot {
  readonly lane: Lane;
  readonly host: HostPace;
  readonly atHost: LaneAtHost;
  readonly reputation: Reputation;
}

/** The end of an attempt, as far as the pace depends on it. */
export interface AttemptEnd {
  readonly result: SendResult;
  /** How long the receiver asked to wait; `null` if it did not. */
  readonly askedMs: number | null;
}

/**
 * How many attempts may be under way: at each host as many as it answers in time, for each webhook as many as its receiver
 * and the operator want, and in this process. All times are those of the steady clock.
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
   * Grants what may be claimed now. The capacity of a lane is deducted for the lanes that are requested later, so that a claim
   * never exceeds a limit. `deliveries` are the ones that will start, if these are known.
   */
  grant(nowMs: number, deliveries?: readonly { readonly prefix: string }[]): Grant {
    const wanted = deliveries && Map.groupBy(deliveries, ({ prefix }) => prefix);
    const isOfDue = wanted === undefined;
    if (isOfDue) this.#claims += 1;
    this.#forget(nowMs);
    const claim = { number: this.#claims, isOfDue };
    const granted = new Map<string, number>();
    const takenOf = new Map<HostPace, { shared: number; apart: number }>();
    const counts = { ...this.#underWay }; // includes what this claim has granted
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
      taken[lane.atHost.own !== undefined ? 'apart' : 'shared'] += capacity;
      counts[reputationOf(lane)] += capacity;
      if (room === 0) {
        nextAtMs = Math.min(nextAtMs, this.#nextAtMs(lane, nowMs));
        waiting += 1;
      }
      return capacity;
    };
    const limit = Math.min(roomOf('quick', this.#underWay), MAX_CLAIMED);
    return { limit, laneCapacity, waitMs: () => Math.max(0, nextAtMs - nowMs), waiting: () => waiting };
  }

  /** Takes a slot for a claimed delivery of the lane. */
  start(prefix: string, nowMs: number): Slot {
    const lane = this.#lane(prefix);
    const { host, atHost, rate, terms } = lane;
    const reputation = reputationOf(lane);
    const slot = { lane, host, atHost, reputation, ...host.start(atHost, nowMs) };
    lane.underWay += 1;
    lane.usedAtMs = nowMs;
    this.#underWay[reputation] += 1;
    rate.started({ perSecond: terms.perSecond, nowMs });
    return slot;
  }

  /** Frees the slot. `attempt` is given if one was made. */
  end(slot: Slot, nowMs: number, attempt?: AttemptEnd): void {
    const { lane, host, atHost, startedAtMs } = slot;
    lane.underWay -= 1;
    this.#underWay[slot.reputation] -= 1;
    if (attempt === undefined) {
      host.abandon(atHost, slot);
      return;
    }
    const { result, askedMs } = attempt;
    // A receiver that gets one request at a time can only mean the rate.
    const together = atHost.own === undefined ? host.underWay : atHost.underWay;
    const isRate = result.outcome.answer?.status === 429 || together === 1;
    const refused = askedMs === null ? undefined : isRate ? 'rate' : 'number';
    host.end(atHost, slot, { nowMs, result, refused });
    if (askedMs !== null) {
      lane.rate.refused(askedMs, { startedAtMs, nowMs, isRate });
      return;
    }
    const { ok } = result.outcome;
    lane.rate.accepted(nowMs);
    lane.failedInARow = ok ? 0 : lane.failedInARow + 1;
  }

  /** Starts the ramp of a webhook that was enabled `agoMs` ago: its rate grows from ten a second. */
  enabled(prefix: string, agoMs: number, nowMs: number): void {
    this.#lane(prefix).rate.enabled(nowMs - agoMs);
  }

  /** A blocked lane gets no room. */
  setBlocked(prefix: string, isBlocked: boolean): void {
    this.#lane(prefix).isBlocked = isBlocked;
  }

  #room(lane: Lane, counts: Counts, asked: RoomAsked): number {
    const { host, atHost, rate, underWay, terms } = lane;
    if (lane.isBlocked || !this.#options.owns(host.name)) return 0;
    if (this.#options.proxyWaitMs(host.name) > 0) return 0;
    const reputation = reputationOf(lane);
    const most = (reputation === 'failing' ? MAX_OF_FAILING_LANE : MAX_OF_LANE) - underWay;
    const byRate = rate.room(underWay, { perSecond: terms.perSecond, nowMs: asked.nowMs });
    const own = Math.min(most, byRate, roomOf(reputation, counts));
    if (own <= 0) return 0;
    return Math.min(own, host.room(atHost, asked));
  }

  /** Forgets lanes and hosts that are not used any more: a process may deliver to a hundred thousand webhooks in a day. */
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

  /** When the lane may get room without anything else happening. */
  #nextAtMs({ host, atHost, rate, terms }: Lane, nowMs: number): number {
    if (!this.#options.owns(host.name)) return nowMs + LOOK_MS;
    const proxyMs = this.#options.proxyWaitMs(host.name);
    if (proxyMs > 0) return nowMs + proxyMs;
    const rateAtMs = rate.nextAtMs(terms.perSecond, nowMs);
    return rateAtMs > nowMs ? rateAtMs : host.nextAtMs(atHost, nowMs);
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
        atHost: new LaneAtHost(prefix),
        rate: new LaneRate(),
        underWay: 0,
        failedInARow: 0,
        isBlocked: false,
        usedAtMs: undefined,
      };
      this.#lanes.set(prefix, lane);
      return lane;
    }
    if (known.terms.url !== terms.url) {
      known.host = this.#host(prefix, terms);
      known.atHost = new LaneAtHost(prefix);
    }
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

function reputationOf({ failedInARow, host }: Lane): Reputation {
  if (failedInARow >= FAILING_AFTER) return 'failing';
  return host.isQuick ? 'quick' : 'unproven';
}

/** How many more attempts of lanes with this reputation may start. */
function roomOf(reputation: Reputation, { failing, unproven, quick }: Counts): number {
  const all = MAX_TOGETHER.quick - failing - unproven - quick;
  if (reputation === 'quick') return all;
  const ofUnproven = Math.min(all, MAX_TOGETHER.unproven - failing - unproven);
  return reputation === 'unproven' ? ofUnproven : Math.min(ofUnproven, MAX_TOGETHER.failing - failing);
}
