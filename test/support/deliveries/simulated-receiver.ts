/** A receiver that answers in time if it is asked at its own pace. Times are milliseconds. */
export interface ReceiverPlan {
  /** How many requests it works on at once. Others wait. */
  readonly workers: number;
  readonly workMs: number;
  /** The share of `workMs` by which a request differs at most. */
  readonly jitter?: number;
  /** How far the times of requests are spread around `workMs`: the sigma of a lognormal distribution. */
  readonly spread?: number;
  /** The time of a worker that a handshake takes. */
  readonly handshakeMs?: number;
  /** True if it closes each connection after one answer. */
  readonly closes?: boolean;
  /** The time of a message in one direction. */
  readonly wayMs?: number;
  /** How often it stands still, and for how long. */
  readonly pause?: { readonly everyMs: number; readonly forMs: number };
  /** The most connections that it accepts at once. It refuses others. */
  readonly connections?: number;
  /** The rate limit. Further requests in a window are answered 429, with the seconds until its end. */
  readonly window?: { readonly size: number; readonly windowMs: number };
  /** Another rate limit: a bucket of tokens. Further requests are answered 429, with this time to wait. */
  readonly bucket?: { readonly size: number; readonly perSecond: number; readonly askedMs: number };
  /** The number of waiting requests beyond which it answers 503 and asks for a second. */
  readonly queue?: number;
  /** The time that the first request takes. */
  readonly coldMs?: number;
  /** The share of requests that it answers with 503, however many are under way. */
  readonly erring?: number;
  /** The share of requests that it refuses, however many are under way, and the wait that it asks for: 0 unless given. */
  readonly refusing?: {
    readonly share: number;
    readonly status: 400 | 429 | 503;
    readonly askedMs?: number | null;
  };
  /** Every which request it loses, however many are under way: it never answers, or cuts the connection at once. */
  readonly losing?: { readonly every: number; readonly how: 'hangs' | 'cuts' };
}

interface Reply {
  readonly atMs: number;
  readonly status: number | 'cut';
  /** The time that `Retry-After` asks for. */
  readonly askedMs: number | null;
}

const DEFAULT_WAY_MS = 0.5;
const REFUSAL_MS = 1;

/** A receiver in virtual time. It tells when it will answer. */
export class SimulatedReceiver {
  readonly plan: ReceiverPlan;
  readonly #random: () => number;
  /** The times at which the workers become free. */
  readonly #freeAtMs: number[];
  #window = { sinceMs: Number.NEGATIVE_INFINITY, count: 0 };
  #bucket = { tokens: Infinity, atMs: 0 };
  /** The times at which the accepted requests end. */
  #endsMs: number[] = [];
  #isCold = true;
  #requests = 0;

  constructor(plan: ReceiverPlan, random: () => number) {
    this.plan = plan;
    this.#random = random;
    this.#freeAtMs = Array.from({ length: plan.workers }, () => 0);
  }

  get wayMs(): number {
    return this.plan.wayMs ?? DEFAULT_WAY_MS;
  }

  /** The requests a second that it can take; infinite if only the number at once is limited. */
  get perSecond(): number {
    const { workers, workMs, handshakeMs = 0, closes, window, bucket, connections, pause } = this.plan;
    const atOnce = Math.min(workers, connections ?? Infinity);
    const byWork = (1000 * atOnce) / (workMs + (closes ? handshakeMs : 0));
    return Math.min(
      pause === undefined ? byWork : byWork * (1 - pause.forMs / pause.everyMs),
      window === undefined ? Infinity : (1000 * window.size) / window.windowMs,
      bucket?.perSecond ?? Infinity,
    );
  }

  /** Returns when a handshake that starts now is complete. */
  connected(nowMs: number): number {
    const { wayMs } = this;
    const { handshakeMs = 0 } = this.plan;
    const answeredMs = handshakeMs === 0 ? nowMs : this.#work(nowMs + wayMs, handshakeMs);
    return answeredMs + 3 * wayMs;
  }

  /** Returns the reply to a request that is sent now. */
  reply(nowMs: number): Reply {
    const {
      workers,
      workMs,
      jitter = 0,
      spread = 0,
      window,
      bucket,
      queue = Infinity,
      coldMs,
      erring = 0,
      refusing,
      losing,
    } = this.plan;
    const { wayMs } = this;
    const cameMs = nowMs + wayMs;
    const refused = { atMs: cameMs + REFUSAL_MS + wayMs };
    this.#requests += 1;
    if (losing !== undefined && this.#requests % losing.every === 0)
      return { atMs: losing.how === 'cuts' ? refused.atMs : Infinity, status: 'cut', askedMs: null };
    if (refusing !== undefined && this.#random() < refusing.share)
      return {
        ...refused,
        status: refusing.status,
        askedMs: refusing.askedMs === undefined ? 0 : refusing.askedMs,
      };
    if (bucket !== undefined) {
      const { tokens, atMs } = this.#bucket;
      const refilled = tokens + ((cameMs - atMs) / 1000) * bucket.perSecond;
      this.#bucket = { tokens: Math.min(bucket.size, refilled), atMs: cameMs };
      if (this.#bucket.tokens < 1) return { ...refused, status: 429, askedMs: bucket.askedMs };
      this.#bucket.tokens -= 1;
    }
    if (window !== undefined) {
      if (cameMs >= this.#window.sinceMs + window.windowMs) this.#window = { sinceMs: cameMs, count: 0 };
      const leftMs = this.#window.sinceMs + window.windowMs - cameMs;
      if (this.#window.count >= window.size)
        return { ...refused, status: 429, askedMs: Math.ceil(leftMs / 1000) * 1000 };
      this.#window.count += 1;
    }
    this.#endsMs = this.#endsMs.filter((atMs) => atMs > cameMs);
    if (this.#endsMs.length - workers >= queue) return { ...refused, status: 503, askedMs: 1_000 };
    const costMs =
      this.#isCold && coldMs !== undefined
        ? coldMs
        : workMs * (1 + jitter * (2 * this.#random() - 1)) * this.#lognormal(spread);
    this.#isCold = false;
    const endMs = this.#work(cameMs, costMs);
    this.#endsMs.push(endMs);
    return { atMs: endMs + wayMs, status: this.#random() < erring ? 503 : 200, askedMs: null };
  }

  /** Gives work to the first free worker. Returns when it is done. It stands still while the receiver does. */
  #work(nowMs: number, costMs: number): number {
    const worker = this.#freeAtMs.indexOf(Math.min(...this.#freeAtMs));
    const { everyMs, forMs } = this.plan.pause ?? { everyMs: Infinity, forMs: 0 };
    let atMs = Math.max(nowMs, this.#freeAtMs[worker] ?? 0);
    for (let leftMs = costMs; ; ) {
      const sinceMs = everyMs === Infinity ? 0 : atMs % everyMs;
      const workingMs = Math.min(leftMs, Math.max(0, everyMs - forMs - sinceMs));
      leftMs -= workingMs;
      atMs += workingMs;
      if (leftMs === 0) break;
      atMs += everyMs - sinceMs - workingMs;
    }
    this.#freeAtMs[worker] = atMs;
    return atMs;
  }

  /** A factor whose mean is 1. */
  #lognormal(sigma: number): number {
    if (sigma === 0) return 1;
    const normal = Math.sqrt(-2 * Math.log(1 - this.#random())) * Math.cos(2 * Math.PI * this.#random());
    return Math.exp(sigma * normal - (sigma * sigma) / 2);
  }
}
