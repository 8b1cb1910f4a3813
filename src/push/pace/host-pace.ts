import type { SendResult } from '../sender/timed-send.ts';
import type { LaneAtHost } from './lane-at-host.ts';
import { Neighbours } from './neighbours.ts';
import { MAX_AT_HOST, type Place, RequestLimit } from './request-limit.ts';

/** The most attempts at one host of lanes that are paced apart, so that they leave room for the others. */
const MAX_APART = MAX_AT_HOST / 4;
/** This many connections may be opened at once however few are open. */
const FIRST_CONNECTIONS = 8;
/** The time that a handshake may take if the receiver makes one after the other. More opens connections sooner, less leaves more of the 500 ms to the answer. */
const SAFE_CONNECT_MS = 200;
const HANDSHAKES_OF_MEAN = 4;
/** If this process is later than this with an attempt, more attempts would only make it later. */
const MAX_LATE_MS = 100;
const QUICK_MS = 250;
/** The part of a refused number of requests that is used. */
const USED_PART = 0.8;
/** Statuses by which servers say that they are overloaded. */
const OVERLOADED = [502, 503, 504];
/** Round trips of the network in an exchange, on a kept connection and on a new one, by TLS 1.3. */
const ROUND_TRIPS = { kept: 1, opened: 3, opening: 2 } as const;

/** The attempts that a choice has given to other lanes at a host; those to lanes paced apart are counted separately. */
export interface Taken {
  shared: number;
  apart: number;
}

/** An attempt under way: the limit that it counts for, its place there, and how many others were under way at the host. */
export interface HostSlot {
  readonly limit: RequestLimit;
  readonly place: Place;
  readonly others: number;
  /** Its place among those for which a connection was being opened; 0 if it found an open one. */
  readonly connecting: number;
  readonly startedAtMs: number;
}

/** The end of an attempt that was made. */
export interface HostEnd {
  readonly nowMs: number;
  readonly result: SendResult;
  /** The receiver's reason for asking us to wait: the rate, or the number of requests at once. */
  readonly refused: 'rate' | 'number' | undefined;
}

/**
 * Limits the attempts under way at one host. Webhooks of several keys may share the host and its limit. One that stands
 * out among them is paced apart, by a limit of its own, until it no longer does.
 */
export class HostPace {
  readonly name: string;
  readonly #openConnections: () => number;
  readonly #requests = new RequestLimit();
  readonly #neighbours = new Neighbours();
  /** Attempts under way: those that share the host's limit, and those of lanes that are paced apart. */
  #shared = 0;
  #apart = 0;
  #answeredAtMs = Number.NEGATIVE_INFINITY;
  /** The shortest round trip of the network that was seen. */
  #roundTripMs = Infinity;
  /** The time of a handshake, divided by its place among those under way. */
  #handshakeMs = Infinity;

  /** `openConnections` counts connections whose handshake is complete, idle or in use. */
  constructor(name: string, openConnections: () => number) {
    this.name = name;
    this.#openConnections = openConnections;
  }

  get underWay(): number {
    return this.#shared + this.#apart;
  }

  /** True if it answers quickly, as far as is known. */
  get isQuick(): boolean {
    return this.#requests.bestMs <= QUICK_MS;
  }

  /**
   * How many more attempts of a lane may start. Each open connection takes one request; no more connections are being opened
   * than are open, so that a receiver that wants few has refused few.
   */
  room({ own }: LaneAtHost, taken: Taken, nowMs: number): number {
    const all = this.underWay + taken.shared + taken.apart;
    const open = this.#openConnections();
    const opening = Math.min(
      Math.max(FIRST_CONNECTIONS, open),
      Math.max(1, SAFE_CONNECT_MS / this.#handshakeMs),
    );
    const most = Math.max(0, Math.min(Math.floor(open + opening) - all, MAX_AT_HOST - all));
    if (own !== undefined) {
      const left = MAX_APART - this.#apart - taken.apart;
      return Math.max(0, Math.min(own.room(0, nowMs), left, most));
    }
    return Math.min(this.#requests.room(taken.shared, nowMs), most);
  }

  /** The time at which there may be room for the lane without anything else happening; infinite if not at all. */
  nextAtMs({ own }: LaneAtHost, nowMs: number): number {
    const atMs = (own ?? this.#requests).nextAtMs;
    return atMs > nowMs ? atMs : Infinity;
  }

  start(lane: LaneAtHost, nowMs: number): HostSlot {
    const { underWay: others } = this;
    const limit = lane.own ?? this.#requests;
    const place = limit.started(nowMs);
    this.#count(lane, 1);
    const connecting = Math.max(0, this.underWay - this.#openConnections());
    return { limit, place, others, connecting, startedAtMs: nowMs };
  }

  /** Ends an attempt for which nothing was sent. */
  abandon(lane: LaneAtHost, { limit, place }: HostSlot): void {
    limit.abandoned(place);
    this.#count(lane, -1);
  }

  end(lane: LaneAtHost, slot: HostSlot, end: HostEnd): void {
    this.#judge(lane, slot, end);
    this.#count(lane, -1);
    const { result, refused, nowMs } = end;
    const { limit, place, startedAtMs } = slot;
    this.#learnConnection(slot, result);
    const ending = endingOf(result);
    const isMoved = limit !== (lane.own ?? this.#requests); // it was paced otherwise when it started
    if (isMoved || refused === 'rate' || ending === 'not sent') limit.abandoned(place);
    else if (refused === 'number') limit.lost(place, nowMs, USED_PART * place.at);
    else if (ending === 'answered') {
      this.#answeredAtMs = nowMs;
      limit.answered(place, this.#serverMs(result), { nowMs, isLate: result.lateMs > MAX_LATE_MS });
    } else {
      const open = this.#openConnections();
      const isRefused = ending === 'refused' || this.#answeredAtMs > startedAtMs;
      // If others are served meanwhile, the receiver wants no more connections than are open.
      limit.lost(place, nowMs, result.answerMs === null && isRefused && open > 0 ? open : undefined);
    }
  }

  #learnConnection({ connecting }: HostSlot, { connectMs, roundTripMs }: SendResult): void {
    if (connectMs === null || roundTripMs === null) return;
    this.#roundTripMs = Math.min(this.#roundTripMs, roundTripMs);
    const handshakeMs =
      Math.max(1, connectMs - ROUND_TRIPS.opening * this.#roundTripMs) / Math.max(1, connecting);
    const before = this.#handshakeMs === Infinity ? handshakeMs : this.#handshakeMs;
    this.#handshakeMs = before + (handshakeMs - before) / HANDSHAKES_OF_MEAN;
  }

  /** The receiver's part of the time: without the network's, and without the time for which this process kept it waiting. */
  #serverMs({ connectMs, answerMs, lateMs }: SendResult): number {
    const trips = connectMs === null ? ROUND_TRIPS.kept : ROUND_TRIPS.opened;
    const networkMs = this.#roundTripMs === Infinity ? 0 : trips * this.#roundTripMs;
    return (connectMs ?? 0) + (answerMs ?? 0) - lateMs - networkMs;
  }

  /** Paces a lane apart as soon as it stands out, and with the others again when it no longer does. */
  #judge(lane: LaneAtHost, slot: HostSlot, { result, refused, nowMs }: HostEnd): void {
    const { outcome, answerMs, lateMs } = result;
    if (answerMs === null || (refused === 'rate' && outcome.answer?.status === 429)) return;
    const isOvertaken = lane.own !== undefined || slot.limit.isOvertaken(slot.place);
    const times = { startedAtMs: slot.startedAtMs, nowMs, answerMs: Math.max(0, answerMs - lateMs) };
    const attempt = { ...times, outcome, place: slot.others + 1, isOvertaken };
    const standsOut = this.#neighbours.standsOut(lane, attempt);
    if (standsOut === (lane.own !== undefined)) return;
    const { underWay } = lane;
    this.#count(lane, -underWay);
    lane.own = standsOut ? new RequestLimit() : undefined;
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
}

/** Says how an attempt bears on the number of requests. */
function endingOf({ outcome, answerMs }: SendResult): 'answered' | 'lost' | 'refused' | 'not sent' {
  if (outcome.ok) return 'answered';
  if (outcome.kind === 'connect') return answerMs === null ? 'refused' : 'lost';
  if (outcome.kind === 'timeout' || outcome.kind === 'cut') return 'lost';
  if (answerMs === null) return 'not sent';
  return OVERLOADED.includes(outcome.answer?.status ?? 0) ? 'lost' : 'answered';
}
