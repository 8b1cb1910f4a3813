import type { AttemptOutcome } from '../queue/delivery.ts';
import type { SendResult } from '../sender/sender.ts';
import { AdaptiveLimit, type Ended } from './adaptive-limit.ts';
import type { LaneAtHost } from './lane-at-host.ts';
import { Neighbours } from './neighbours.ts';

const MAX_UNDER_WAY = 128;
/** After this pause a host has no open connections and may have been replaced, so its limits start again. */
const IDLE_MS = 3_000;
/** If this process is later than this with an attempt, more attempts would only make it later. */
const MAX_LATE_MS = 100;
const QUICK_MS = 250;
/** Statuses by which servers may say that they are overloaded, if this many answers in a row have one. */
const OVERLOADED = [502, 503, 504];
const OVERLOADED_AFTER = 3;
/** A host that gave such an answer to a single request has another problem. That is remembered for this long. */
const ERRS_ALONE_MS = 300_000;

/** The claim that asks for room. If `isOfDue`, it asks for all lanes with something due, and will ask again. */
export interface Claim {
  readonly number: number;
  readonly isOfDue: boolean;
}

export interface RoomAsked {
  readonly claim: Claim;
  /** What the claim has granted to other lanes at this host, to those paced apart separately. */
  readonly taken: { readonly shared: number; readonly apart: number };
  readonly nowMs: number;
}

/** The end of an attempt that was made. */
export interface HostEnd extends Ended {
  readonly result: SendResult;
  readonly place: number;
  /** What the receiver has refused, the rate or the number of requests, if it asked to wait. */
  readonly refused: 'rate' | 'number' | undefined;
}

/**
 * How many attempts one host may have under way. Webhooks of several keys may share the host and its limits. One that stands
 * out among them is paced apart, by a limit of its own, until it no longer does.
 */
export class HostPace {
  readonly name: string;
  readonly #openConnections: () => number;
  readonly #requests = new AdaptiveLimit(MAX_UNDER_WAY);
  readonly #handshakes = new AdaptiveLimit(MAX_UNDER_WAY);
  readonly #neighbours = new Neighbours();
  /** Attempts under way: those that share the host's limit, and those of lanes that are paced apart. */
  #shared = 0;
  #apart = 0;
  #lastStartMs = Number.NEGATIVE_INFINITY;
  /** How many of the last answers in a row said that it may be overloaded. */
  #errors = 0;
  #erredAloneAtMs = Number.NEGATIVE_INFINITY;
  /** Lanes that got no room although something is due, in order, each with the last claim that asked. */
  readonly #waiting = new Map<string, number>();

  /** `openConnections` counts connections whose handshake is complete, idle or in use. */
  constructor(name: string, openConnections: () => number) {
    this.name = name;
    this.#openConnections = openConnections;
  }

  get underWay(): number {
    return this.#shared + this.#apart;
  }

  /** Whether it answers quickly, as far as is known. */
  get isQuick(): boolean {
    return (this.#requests.bestMs ?? Infinity) <= QUICK_MS;
  }

  /**
   * How many more attempts of a lane may start. Each open connection takes one request; further ones open new connections.
   * Lanes take turns, and the one that has waited longest comes first.
   */
  room({ prefix, own, underWay }: LaneAtHost, { taken, claim, nowMs }: RoomAsked): number {
    const all = this.underWay + taken.shared + taken.apart;
    const open = this.#openConnections();
    const connections = Math.max(0, open - all) + this.#handshakes.room(Math.max(0, all - open), nowMs);
    if (own !== undefined)
      return Math.max(0, Math.min(own.room(underWay, nowMs), connections, MAX_UNDER_WAY - all));
    const room = Math.min(this.#requests.room(this.#shared + taken.shared, nowMs), connections);
    const left = Math.max(0, room - this.#ahead(prefix, claim.number, room));
    if (left === 0 && claim.isOfDue) this.#waiting.set(prefix, claim.number);
    return left;
  }

  /** When there may be room for the lane without anything else happening; infinite if not at all. */
  nextAtMs({ own }: LaneAtHost, nowMs: number): number {
    const later = (atMs: number): number => (atMs > nowMs ? atMs : Infinity);
    return Math.min(later((own ?? this.#requests).nextAtMs), later(this.#handshakes.nextAtMs));
  }

  start(lane: LaneAtHost, nowMs: number): void {
    if (this.underWay === 0 && nowMs - this.#lastStartMs > IDLE_MS) {
      this.#requests.restart();
      this.#handshakes.restart();
    }
    this.#waiting.delete(lane.prefix);
    this.#lastStartMs = nowMs;
    this.#count(lane, 1);
    if (lane.own === undefined) this.#requests.started(this.#shared, nowMs);
    else lane.own.started(lane.underWay, nowMs);
    const connecting = this.underWay - this.#openConnections();
    if (connecting > 0) this.#handshakes.started(connecting, nowMs);
  }

  /** Ends an attempt for which nothing was sent. */
  abandon(lane: LaneAtHost, ended: Ended): void {
    this.#count(lane, -1);
    (lane.own ?? this.#requests).abandoned(ended);
    this.#handshakes.abandoned(ended);
  }

  end(lane: LaneAtHost, end: HostEnd): void {
    const { outcome, connectMs, answerMs, lateMs } = end.result;
    this.#judge(lane, end);
    this.#count(lane, -1);
    const limit = lane.own ?? this.#requests;
    if (end.refused !== undefined) {
      if (end.refused === 'number') limit.refused(end);
      else limit.abandoned(end);
      this.#handshakes.abandoned(end);
      return;
    }
    const isLate = lateMs > MAX_LATE_MS;
    const isSilent =
      !outcome.ok && (outcome.kind === 'timeout' || outcome.kind === 'connect' || outcome.kind === 'cut');
    if (connectMs !== null) this.#handshakes.answered(connectMs, end, isLate);
    else if (answerMs !== null || !isSilent) this.#handshakes.abandoned(end);
    else this.#handshakes.lost(end);
    const error = lane.own === undefined ? this.#error(outcome, end) : undefined;
    if (answerMs === null || error === 'anyway') limit.abandoned(end);
    else if (isSilent || error === 'overload') limit.lost(end);
    else limit.answered(Math.max(0, answerMs - lateMs), end, isLate);
  }

  /** Paces a lane apart as soon as it stands out, and with the others again when it no longer does. */
  #judge(lane: LaneAtHost, { result, refused, place, startedAtMs, nowMs }: HostEnd): void {
    const { outcome, answerMs, lateMs } = result;
    if (answerMs === null || (refused === 'rate' && outcome.answer?.status === 429)) return;
    const attempt = { startedAtMs, nowMs, outcome, place, answerMs: Math.max(0, answerMs - lateMs) };
    const standsOut = this.#neighbours.standsOut(lane, attempt);
    if (standsOut === (lane.own !== undefined)) return;
    const { underWay } = lane;
    this.#count(lane, -underWay);
    lane.own = standsOut ? new AdaptiveLimit(MAX_UNDER_WAY) : undefined;
    this.#count(lane, underWay);
    if (!standsOut) return;
    this.#neighbours.leaves(lane);
    this.#requests.forgive();
  }

  #count(lane: LaneAtHost, change: number): void {
    lane.underWay += change;
    if (lane.own === undefined) this.#shared += change;
    else this.#apart += change;
  }

  /** What an error says about the number of attempts under way, if the answer is one; `anyway`: nothing. */
  #error({ answer }: AttemptOutcome, { nowMs }: Ended): 'anyway' | 'overload' | undefined {
    this.#errors = OVERLOADED.includes(answer?.status ?? 0) ? this.#errors + 1 : 0;
    if (this.#errors === 0) return undefined;
    if (!this.#requests.isCrowded) this.#erredAloneAtMs = nowMs;
    const isKnown = nowMs < this.#erredAloneAtMs + ERRS_ALONE_MS;
    return this.#errors < OVERLOADED_AFTER || isKnown ? 'anyway' : 'overload';
  }

  /** How many other lanes have waited longer, counted up to `most`. */
  #ahead(prefix: string, claim: number, most: number): number {
    let ahead = 0;
    for (const [other, asked] of this.#waiting) {
      if (other === prefix || ahead >= most) break;
      if (asked < claim - 1)
        this.#waiting.delete(other); // nothing of it is due any more
      else ahead += 1;
    }
    return ahead;
  }
}
