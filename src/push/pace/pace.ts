import type { Sender } from '../sender/sender.ts';
import type { SendResult } from '../sender/timed-send.ts';
import type { HostOwners } from './host-owners.ts';
import { HostPace, type HostSlot, type Taken } from './host-pace.ts';
import { LaneAtHost } from './lane-at-host.ts';
import { LaneRate, RAMP_MS } from './lane-rate.ts';

/** The most attempts under way in this process. */
const MAX_UNDER_WAY = 512;
/** The most deliveries of one choice. */
const MAX_CHOSEN = 100;
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

interface LaneTerms {
  /** The webhook's URL; `undefined` if there is none. */
  readonly url: string | undefined;
  /** The operator's limit, which may be infinite. */
  readonly perSecond: number;
}

/** A lane with something due, and how many deliveries may start at most. */
export interface Wanted extends LaneTerms {
  readonly prefix: string;
  readonly count: number;
}

export interface Choice {
  /** How many deliveries may start, of each lane that may start any. */
  readonly chosen: ReadonlyMap<string, number>;
  /** The lanes that must wait. */
  readonly waiting: readonly Wanted[];
  /** How long until one of these may start without anything else happening; may be infinite. */
  readonly waitMs: number;
}

export interface PaceOptions {
  readonly owners: Pick<HostOwners, 'owns'>;
  readonly sender: Pick<Sender, 'openConnections' | 'proxyWaitMs'>;
}

interface Lane {
  readonly prefix: string;
  terms: LaneTerms;
  host: HostPace;
  atHost: LaneAtHost;
  readonly rate: LaneRate;
  underWay: number;
  failedInARow: number;
  /** The number of its last attempt in the order of all starts, by which lanes take turns. */
  lastStart: number;
  /** When that was, or when the lane was first checked. */
  usedAtMs: number | undefined;
  enabledAtMs: number | undefined;
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
 * and the operator want, and in this process. It is told what started and what ended, and asked what may start. All times are
 * those of the steady clock.
 */
export class Pace {
  readonly #options: PaceOptions;
  readonly #hosts = new Map<string, HostPace>();
  readonly #lanes = new Map<string, Lane>();
  readonly #underWay: Counts = { failing: 0, unproven: 0, quick: 0 };
  #starts = 0;
  #lookedAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: PaceOptions) {
    this.#options = options;
  }

  /** True if nothing more may start before something has ended. */
  get isFull(): boolean {
    return roomOf('quick', this.#underWay) <= 0;
  }

  /**
   * Chooses what may start now. Nothing is reserved, so what was chosen must start before the next choice. Lanes take turns: the one
   * whose last attempt started longest ago comes first.
   */
  choose(wanted: readonly Wanted[], nowMs: number): Choice {
    this.#forget(nowMs);
    const counts = { ...this.#underWay };
    const takenOf = new Map<HostPace, Taken>();
    const chosen = new Map<string, number>();
    const waiting: Wanted[] = [];
    let [left, nextAtMs] = [Math.min(MAX_CHOSEN, roomOf('quick', counts)), Infinity];
    const inTurn = wanted
      .map((each) => ({ each, lane: this.#lane(each.prefix, each) }))
      .sort((a, b) => a.lane.lastStart - b.lane.lastStart);
    for (const { each, lane } of inTurn) {
      if (left <= 0) break;
      const taken = takenOf.get(lane.host) ?? { shared: 0, apart: 0 };
      const room = this.#room(lane, { counts, taken, nowMs });
      const count = Math.min(room, each.count, left);
      if (room === 0) {
        waiting.push(each);
        nextAtMs = Math.min(nextAtMs, this.#nextAtMs(lane, nowMs));
      } else {
        chosen.set(each.prefix, count);
        takenOf.set(lane.host, taken);
        taken[lane.atHost.own === undefined ? 'shared' : 'apart'] += count;
        counts[reputationOf(lane)] += count;
        left -= count;
      }
    }
    return { chosen, waiting, waitMs: Math.max(0, nextAtMs - nowMs) };
  }

  /** Takes a slot for a claimed delivery of the lane. */
  start(prefix: string, nowMs: number): Slot {
    const lane = this.#lane(prefix);
    const { host, atHost, rate, terms } = lane;
    const reputation = reputationOf(lane);
    const slot = { lane, host, atHost, reputation, ...host.start(atHost, nowMs) };
    lane.underWay += 1;
    lane.usedAtMs = nowMs;
    this.#starts += 1;
    lane.lastStart = this.#starts;
    this.#underWay[reputation] += 1;
    rate.started({ perSecond: terms.perSecond, nowMs });
    return slot;
  }

  /** True while the receiver of this slot's webhook has asked to wait, so that nothing should be sent that has not been. */
  isHeld({ lane }: Slot, nowMs: number): boolean {
    return lane.rate.isHeld(nowMs);
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

  /**
   * Starts the ramp of a webhook that was enabled `agoMs` ago: its rate grows from ten a second. Each enabling, which is known by
   * its time of the day, starts it once.
   */
  enabled(
    prefix: string,
    enabledAtMs: number,
    { agoMs, nowMs }: { readonly agoMs: number; readonly nowMs: number },
  ): void {
    if (agoMs >= RAMP_MS) return;
    const lane = this.#lane(prefix);
    if (lane.enabledAtMs !== enabledAtMs) lane.rate.enabled(nowMs - Math.max(0, agoMs));
    lane.enabledAtMs = enabledAtMs;
  }

  #room(
    lane: Lane,
    given: { readonly counts: Counts; readonly taken: Taken; readonly nowMs: number },
  ): number {
    const { host, atHost, rate, underWay, terms } = lane;
    const { counts, taken, nowMs } = given;
    if (!this.#options.owners.owns(host.name)) return 0;
    if (this.#options.sender.proxyWaitMs(host.name) > 0) return 0;
    const reputation = reputationOf(lane);
    const most = (reputation === 'failing' ? MAX_OF_FAILING_LANE : MAX_OF_LANE) - underWay;
    const byRate = rate.room(underWay, { perSecond: terms.perSecond, nowMs });
    const own = Math.min(most, byRate, roomOf(reputation, counts));
    if (own <= 0) return 0;
    return Math.min(own, host.room(atHost, taken, nowMs));
  }

  /** Forgets lanes and hosts that are not used any more: a process may deliver to a hundred thousand webhooks in a day. */
  #forget(nowMs: number): void {
    if (nowMs - this.#lookedAtMs < FORGOTTEN_MS / 10) return;
    this.#lookedAtMs = nowMs;
    for (const lane of this.#lanes.values()) {
      lane.usedAtMs ??= nowMs;
      const isUsed = lane.underWay > 0 || nowMs - lane.usedAtMs <= FORGOTTEN_MS;
      if (!isUsed) this.#lanes.delete(lane.prefix);
    }
    const used = new Set([...this.#lanes.values()].map(({ host }) => host));
    for (const [name, host] of this.#hosts) if (!used.has(host)) this.#hosts.delete(name);
  }

  /** The time at which the lane may get room without anything else happening. */
  #nextAtMs({ host, atHost, rate, terms }: Lane, nowMs: number): number {
    if (!this.#options.owners.owns(host.name)) return nowMs + LOOK_MS;
    const proxyMs = this.#options.sender.proxyWaitMs(host.name);
    if (proxyMs > 0) return nowMs + proxyMs;
    const rateAtMs = rate.nextAtMs(terms.perSecond, nowMs);
    return rateAtMs > nowMs ? rateAtMs : host.nextAtMs(atHost, nowMs);
  }

  #lane(prefix: string, terms?: LaneTerms): Lane {
    const known = this.#lanes.get(prefix);
    if (known === undefined) {
      const { url, perSecond } = terms ?? { url: undefined, perSecond: Infinity };
      const host = this.#host(prefix, url);
      const counts = {
        underWay: 0,
        failedInARow: 0,
        lastStart: 0,
        usedAtMs: undefined,
        enabledAtMs: undefined,
      };
      const parts = { atHost: new LaneAtHost(prefix), rate: new LaneRate() };
      const lane = { prefix, terms: { url, perSecond }, host, ...parts, ...counts };
      this.#lanes.set(prefix, lane);
      return lane;
    }
    if (terms === undefined) return known;
    if (known.terms.url !== terms.url) {
      known.host = this.#host(prefix, terms.url);
      known.atHost = new LaneAtHost(prefix);
    }
    known.terms = terms;
    return known;
  }

  #host(prefix: string, url: string | undefined): HostPace {
    const name = (url === undefined ? undefined : URL.parse(url)?.origin) ?? prefix;
    let host = this.#hosts.get(name);
    if (host === undefined) {
      host = new HostPace(name, () => this.#options.sender.openConnections(name));
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
