import type { AttemptOutcome } from '../queue/delivery.ts';
import type { SendResult } from '../sender/sender.ts';
import { AdaptiveLimit, type Ended } from './adaptive-limit.ts';

const MAX_UNDER_WAY = 128;
/** Attempts of failing webhooks in addition, while others are answered. */
const MAX_APART = 2;
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

/** How many attempts one host may have under way. Webhooks of several keys may share the host and its limits. */
export class HostPace {
  readonly name: string;
  readonly #openConnections: () => number;
  readonly #requests = new AdaptiveLimit(MAX_UNDER_WAY);
  readonly #handshakes = new AdaptiveLimit(MAX_UNDER_WAY);
  #underWay = 0;
  #apart = 0;
  #lastStartMs = Number.NEGATIVE_INFINITY;
  #answeredAtMs = Number.NEGATIVE_INFINITY;
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
    return this.#underWay + this.#apart;
  }

  /** Whether it answers quickly, as far as is known. */
  get isQuick(): boolean {
    return (this.#requests.bestMs ?? Infinity) <= QUICK_MS;
  }

  /**
   * Whether a lane that has been failing since then is paced apart: other lanes get answers, so the fault is its own. Such a
   * lane takes no room from the others, and says nothing about the host.
   */
  isApart(failingSinceMs: number | undefined): boolean {
    return failingSinceMs !== undefined && this.#answeredAtMs > failingSinceMs && !this.#requests.isProbing;
  }

  /** How many more attempts of failing lanes may start. */
  roomApart({ taken }: RoomAsked): number {
    return Math.max(0, MAX_APART - this.#apart - taken.apart);
  }

  /**
   * How many more attempts of a lane may start. Each open connection takes one request; further ones open new connections.
   * Lanes take turns, and the one that has waited longest comes first.
   */
  room(prefix: string, { taken, claim, nowMs }: RoomAsked): number {
    const underWay = this.#underWay + taken.shared;
    const open = this.#openConnections();
    const connecting = this.#handshakes.room(Math.max(0, underWay - open), nowMs);
    const room = Math.min(this.#requests.room(underWay, nowMs), Math.max(0, open - underWay) + connecting);
    const left = Math.max(0, room - this.#ahead(prefix, claim.number, room));
    if (left === 0 && claim.isOfDue) this.#waiting.set(prefix, claim.number);
    return left;
  }

  /** When there may be room without anything else happening; infinite if not at all. */
  nextAtMs(nowMs: number): number {
    const later = (atMs: number): number => (atMs > nowMs ? atMs : Infinity);
    return Math.min(later(this.#requests.nextAtMs), later(this.#handshakes.nextAtMs));
  }

  startApart(): void {
    this.#apart += 1;
  }

  endApart(): void {
    this.#apart -= 1;
  }

  start(prefix: string, nowMs: number): void {
    if (this.#underWay === 0 && nowMs - this.#lastStartMs > IDLE_MS) {
      this.#requests.restart();
      this.#handshakes.restart();
    }
    this.#waiting.delete(prefix);
    this.#lastStartMs = nowMs;
    this.#underWay += 1;
    this.#requests.started(this.#underWay, nowMs);
    const connecting = this.#underWay - this.#openConnections();
    if (connecting > 0) this.#handshakes.started(connecting, nowMs);
  }

  /** Ends an attempt. There is no result if nothing was sent, or if it says nothing about how much the receiver can do at once. */
  end(ended: Ended, result?: SendResult): void {
    this.#underWay -= 1;
    if (result?.outcome.ok) this.#answeredAtMs = ended.nowMs;
    if (result === undefined) {
      this.#requests.abandoned(ended);
      this.#handshakes.abandoned(ended);
      return;
    }
    const { outcome, connectMs, answerMs, lateMs } = result;
    const isLate = lateMs > MAX_LATE_MS;
    const isSilent =
      !outcome.ok && (outcome.kind === 'timeout' || outcome.kind === 'connect' || outcome.kind === 'cut');
    if (connectMs !== null) this.#handshakes.answered(connectMs, ended, isLate);
    else if (answerMs !== null || !isSilent) this.#handshakes.abandoned(ended);
    else this.#handshakes.lost(ended);
    if (answerMs === null || this.#errsAnyway(outcome, ended)) this.#requests.abandoned(ended);
    else if (isSilent || this.#errors > 0) this.#requests.lost(ended);
    else this.#requests.answered(Math.max(0, answerMs - lateMs), ended, isLate);
  }

  /** Whether the answer is an error that says nothing about the number of attempts under way. */
  #errsAnyway({ answer }: AttemptOutcome, { nowMs }: Ended): boolean {
    this.#errors = OVERLOADED.includes(answer?.status ?? 0) ? this.#errors + 1 : 0;
    if (this.#errors === 0) return false;
    if (!this.#requests.isCrowded) this.#erredAloneAtMs = nowMs;
    return this.#errors < OVERLOADED_AFTER || nowMs < this.#erredAloneAtMs + ERRS_ALONE_MS;
  }

  /** The receiver refused an attempt because of the others that are under way. */
  refuse(ended: Ended): void {
    this.#underWay -= 1;
    this.#requests.refused(ended);
    this.#handshakes.abandoned(ended);
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
