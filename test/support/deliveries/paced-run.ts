import { Pace, type Slot } from '../../../src/push/pace/pace.ts';
import type { AttemptOutcome } from '../../../src/push/queue/delivery.ts';
import type { SendResult } from '../../../src/push/sender/timed-send.ts';
import { answered, CUT, SUCCESS, TIMEOUT } from './deliveries.ts';
import { type ReceiverPlan, SimulatedReceiver } from './simulated-receiver.ts';

const LIMIT_MS = 500;
/** From the choice of deliveries until they may be sent: they are leased in a commit. */
const CLAIM_MS = 2;
const KEPT_MS = 4_000;
const REFUSED: AttemptOutcome = { ok: false, kind: 'connect', detail: 'ECONNREFUSED', answer: null };
const RETRY_DELAYS_MS = [30_000, 150_000];
const WIDE = 64;
const MAX_STEPS = 1_000_000;

interface PacedRunOptions {
  /** The receivers by their URL. One receives for all webhooks of its origin that have none of their own. */
  readonly receivers: Readonly<Record<string, ReceiverPlan>>;
  /** The URL of each webhook. */
  readonly lanes: Readonly<Record<string, string>>;
  /** The number of deliveries of each webhook, all due at once. */
  readonly each: number;
  readonly random: () => number;
  readonly perSecond?: number;
  /** True if the webhooks have just been enabled. */
  readonly areNew?: boolean;
}

interface Waiting {
  readonly lane: string;
  readonly attempt: number;
  readonly refusals: number;
}

interface Connection {
  isBusy: boolean;
  idleSinceMs: number;
}

/** The results of one webhook's deliveries. */
export class LaneResult {
  delivered = 0;
  failed = 0;
  requests = 0;
  /** The number of deliveries whose first attempt was refused or failed. */
  firstFailed = 0;
  /** The largest number of refusals of one delivery. */
  mostRefusals = 0;
  startsMs: number[] = [];
  /** When each delivery was accepted, in order. */
  acceptedMs: number[] = [];
  /** The time at which the last first attempt ended. After that only retries are left, which wait for their time. */
  firstPassMs = 0;
}

/** A burst of deliveries in virtual time, with the real pace and simulated receivers. */
export class PacedRun {
  readonly results = new Map<string, LaneResult>();
  /** The largest number of attempts under way at each receiver. */
  readonly most = new Map<string, number>();
  readonly #options: PacedRunOptions;
  readonly #receivers: ReadonlyMap<string, SimulatedReceiver>;
  readonly #connections = new Map<string, Connection[]>();
  readonly #underWay = new Map<string, number>();
  /** When each receiver had 64 requests under way for the first time. */
  readonly wideAtMs = new Map<string, number>();
  readonly #pace: Pace;
  /** The due deliveries of each webhook, in order. */
  readonly #due = new Map<string, Waiting[]>();
  /** The next one is the last. */
  readonly #events: { readonly atMs: number; readonly run: () => void }[] = [];
  #nowMs = 0;
  #wakeAtMs = Infinity;
  #isClaiming = false;

  constructor(options: PacedRunOptions) {
    const { receivers, lanes, each, random } = options;
    this.#options = options;
    this.#receivers = new Map(
      Object.entries(receivers).flatMap(([url, plan]) => {
        const receiver = new SimulatedReceiver(plan, random);
        return [
          [new URL(url).origin, receiver],
          [url, receiver],
        ];
      }),
    );
    this.#pace = new Pace({
      owners: { owns: () => true },
      sender: { openConnections: (host) => this.#connectionsTo(host).length, proxyWaitMs: () => 0 },
    });
    for (const lane of Object.keys(lanes)) {
      if (options.areNew) this.#pace.enabled(lane, 0, { agoMs: 0, nowMs: 0 });
      this.results.set(lane, new LaneResult());
      this.#due.set(
        lane,
        Array.from({ length: each }, () => ({ lane, attempt: 1, refusals: 0 })),
      );
    }
  }

  /** Runs until every delivery has ended. */
  run(): this {
    this.#claim();
    for (let steps = 0; this.#isLeft || this.#events.length > 0; steps++) {
      if (steps > MAX_STEPS) throw new Error('the deliveries do not end');
      this.#step();
      this.#claim();
    }
    return this;
  }

  of(lane: string): LaneResult {
    return this.results.get(lane) ?? new LaneResult();
  }

  get #isLeft(): boolean {
    return [...this.#due.values()].some((lane) => lane.length > 0);
  }

  #step(): void {
    const next = this.#events.at(-1);
    const atMs = Math.min(next?.atMs ?? Infinity, this.#wakeAtMs);
    if (atMs === Infinity) throw new Error('nothing happens, and some deliveries wait');
    this.#nowMs = Math.max(this.#nowMs, atMs);
    if (next === undefined || next.atMs > this.#nowMs) return;
    this.#events.pop();
    next.run();
  }

  #claim(): void {
    if (this.#isClaiming) return;
    const { lanes, perSecond = Infinity } = this.#options;
    const wanted = [...this.#due]
      .filter(([, due]) => due.length > 0)
      .map(([prefix, due]) => ({ prefix, count: due.length, url: lanes[prefix], perSecond }));
    const { chosen, waitMs } = this.#pace.choose(wanted, this.#nowMs);
    const claimed = [...chosen].flatMap(([lane, count]) => this.#due.get(lane)?.splice(0, count) ?? []);
    this.#wakeAtMs = claimed.length > 0 ? Infinity : this.#nowMs + Math.max(1, Math.ceil(waitMs));
    if (claimed.length === 0) return;
    this.#isClaiming = true;
    this.#after(CLAIM_MS, () => {
      this.#isClaiming = false;
      for (const waiting of claimed) this.#start(waiting);
    });
  }

  #start(waiting: Waiting): void {
    const slot = this.#pace.start(waiting.lane, this.#nowMs);
    const host = new URL(this.#options.lanes[waiting.lane] ?? '').origin;
    const underWay = (this.#underWay.get(host) ?? 0) + 1;
    this.#underWay.set(host, underWay);
    this.most.set(host, Math.max(this.most.get(host) ?? 0, underWay));
    if (underWay === WIDE && !this.wideAtMs.has(host)) this.wideAtMs.set(host, this.#nowMs);
    const result = this.of(waiting.lane);
    result.requests += 1;
    result.startsMs.push(this.#nowMs);
    const startedAtMs = this.#nowMs;
    const kept = this.#connectionsTo(host).findLast(({ isBusy }) => !isBusy);
    if (kept !== undefined) {
      kept.isBusy = true;
      this.#exchange({ waiting, slot, host, connection: kept, connectMs: null, roundTripMs: null });
      return;
    }
    const receiver = this.#receiverOf(waiting.lane);
    if (this.#connectionsTo(host).length >= (receiver.plan.connections ?? Infinity)) {
      this.#after(2 * receiver.wayMs, () =>
        this.#end({ waiting, slot, host }, REFUSED, { connectMs: null, roundTripMs: null, answerMs: null }),
      );
      return;
    }
    const roundTripMs = 2 * receiver.wayMs;
    const connectMs = receiver.connected(startedAtMs) - startedAtMs;
    this.#after(Math.min(connectMs, LIMIT_MS), () => {
      if (connectMs >= LIMIT_MS)
        return this.#end({ waiting, slot, host }, TIMEOUT, {
          connectMs: null,
          roundTripMs: null,
          answerMs: null,
        });
      const connection = { isBusy: true, idleSinceMs: 0 };
      this.#connectionsTo(host).push(connection);
      this.#exchange({ waiting, slot, host, connection, connectMs, roundTripMs });
    });
  }

  #exchange(made: {
    readonly waiting: Waiting;
    readonly slot: Slot;
    readonly host: string;
    readonly connection: Connection;
    readonly connectMs: number | null;
    readonly roundTripMs: number | null;
  }): void {
    const { host, connection, connectMs, roundTripMs } = made;
    const receiver = this.#receiverOf(made.waiting.lane);
    const reply = receiver.reply(this.#nowMs);
    const leftMs = LIMIT_MS - (connectMs ?? 0);
    const answerMs = Math.min(reply.atMs - this.#nowMs, leftMs);
    this.#after(answerMs, () => {
      connection.isBusy = false;
      connection.idleSinceMs = this.#nowMs;
      const isLate = answerMs === leftMs;
      const all = this.#connectionsTo(host);
      if (isLate || reply.status === 'cut' || receiver.plan.closes) all.splice(all.indexOf(connection), 1);
      if (isLate) this.#end(made, TIMEOUT, { connectMs, roundTripMs, answerMs });
      else if (reply.status === 'cut') this.#end(made, CUT, { connectMs, roundTripMs, answerMs });
      else if (reply.status === 200) this.#end(made, SUCCESS, { connectMs, roundTripMs, answerMs });
      else this.#end(made, answered(reply.status), { connectMs, roundTripMs, answerMs }, reply.askedMs);
    });
  }

  #end(
    { waiting, slot, host }: { readonly waiting: Waiting; readonly slot: Slot; readonly host: string },
    outcome: AttemptOutcome,
    times: Pick<SendResult, 'connectMs' | 'roundTripMs' | 'answerMs'>,
    askedMs: number | null = null,
  ): void {
    this.#underWay.set(host, (this.#underWay.get(host) ?? 0) - 1);
    const sent = { address: null, durationMs: 0, lateMs: 0, isWithheld: false, isSentAgain: false };
    this.#pace.end(slot, this.#nowMs, { result: { outcome, ...sent, ...times }, askedMs });
    const { lane, attempt } = waiting;
    const result = this.of(lane);
    if (attempt === 1) result.firstPassMs = this.#nowMs;
    if (outcome.ok) {
      result.delivered += 1;
      result.acceptedMs.push(this.#nowMs);
      return;
    }
    if (attempt === 1) result.firstFailed += 1;
    const refusals = waiting.refusals + (askedMs === null ? 0 : 1);
    result.mostRefusals = Math.max(result.mostRefusals, refusals);
    const delayMs = RETRY_DELAYS_MS[attempt - 1];
    if (delayMs === undefined) {
      result.failed += 1;
      return;
    }
    const waitMs = Math.max(delayMs * (0.9 + 0.2 * this.#options.random()), askedMs ?? 0);
    this.#after(waitMs, () => this.#due.get(lane)?.push({ lane, attempt: attempt + 1, refusals }));
  }

  #receiverOf(lane: string): SimulatedReceiver {
    const url = this.#options.lanes[lane] ?? '';
    const receiver = this.#receivers.get(url) ?? this.#receivers.get(new URL(url).origin);
    if (receiver === undefined) throw new Error(`there is no receiver at ${url}`);
    return receiver;
  }

  /** Returns the open connections to a host. */
  #connectionsTo(host: string): Connection[] {
    const all = this.#connections.get(host) ?? [];
    const open = all.filter(({ isBusy, idleSinceMs }) => isBusy || this.#nowMs - idleSinceMs < KEPT_MS);
    this.#connections.set(host, open);
    return open;
  }

  #after(ms: number, run: () => void): void {
    const atMs = this.#nowMs + ms;
    let [low, high] = [0, this.#events.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#events[middle]?.atMs ?? 0) > atMs) low = middle + 1;
      else high = middle;
    }
    this.#events.splice(low, 0, { atMs, run });
  }
}
