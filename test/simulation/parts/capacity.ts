import type { Chance } from '../core/chance.ts';

/** Receivers that answer each request in time if they are asked at their own pace. */
export const PACED_MOODS = [
  /** Works on one request after the other. */
  'small',
  /** Accepts a number of requests in a window, and answers 429 to more. */
  'busy',
  /** Answers 503 while its queue is full. */
  'full',
  /** Closes each connection after one answer, and works on one handshake after the other. */
  'shut',
] as const;
export type PacedMood = (typeof PACED_MOODS)[number];

/** The answer of a receiver to a request. */
interface Said {
  readonly afterMs: number;
  readonly status: string;
  /** The header lines. */
  readonly headers: string;
  /** Until when the sender has to wait after a refusal. */
  readonly asked?: { readonly untilMs: number; readonly isDate: boolean };
}

const REFUSED_WITHIN_MS = 5;
/** The windows, and how many requests each accepts: at least one in two seconds. */
const BUCKETS = [
  { windowMs: 1_000, least: 2, most: 20 },
  { windowMs: 10_000, least: 5, most: 40 },
  { windowMs: 60_000, least: 30, most: 60 },
];

/** The capacity of a receiver. It works on requests even after the sender has stopped waiting. */
export class Capacity {
  readonly #chance: Chance;
  readonly #workMs: number;
  readonly #handshakeMs: number;
  readonly #bucket: { readonly windowMs: number; readonly size: number };
  readonly #queue: number;
  readonly #saysDates: boolean;
  readonly #saysClose: boolean;
  #freeAtMs = 0;
  #window = { sinceMs: Number.NEGATIVE_INFINITY, count: 0 };

  constructor(chance: Chance) {
    this.#chance = chance;
    this.#workMs = chance.between(20, 300);
    this.#handshakeMs = chance.between(5, 60);
    const { windowMs, least, most } = chance.pick(BUCKETS);
    this.#bucket = { windowMs, size: chance.between(least, most) };
    this.#queue = chance.between(4, 16);
    this.#saysDates = chance.is(0.5);
    this.#saysClose = chance.is(0.5);
  }

  /** Returns how long a handshake that begins now takes. */
  handshakeMs(mood: string, nowMs: number): number {
    return mood === 'shut' ? this.#work(nowMs, this.#handshakeMs) : 0;
  }

  request(mood: PacedMood, nowMs: number): Said {
    const { windowMs, size } = this.#bucket;
    switch (mood) {
      case 'small':
        return this.#taken(this.#work(nowMs, this.#workMs));
      case 'busy': {
        if (nowMs >= this.#window.sinceMs + windowMs) this.#window = { sinceMs: nowMs, count: 0 };
        this.#window.count += 1;
        if (this.#window.count <= size) return this.#taken(this.#chance.between(1, 20));
        return this.#refused('429 Too Many Requests', this.#window.sinceMs + windowMs, nowMs);
      }
      case 'full': {
        const workMs = this.#workMs / 5;
        if (this.#freeAtMs - nowMs > workMs * this.#queue)
          return this.#refused('503 Service Unavailable', this.#freeAtMs, nowMs);
        return this.#taken(this.#work(nowMs, workMs));
      }
      case 'shut':
        return this.#taken(this.#work(nowMs, 5), this.#saysClose ? 'connection: close\r\n' : '');
      default:
        return mood satisfies never;
    }
  }

  /** Returns how long it takes until work that arrives now is done. */
  #work(nowMs: number, costMs: number): number {
    this.#freeAtMs = Math.max(nowMs, this.#freeAtMs) + costMs;
    return this.#freeAtMs - nowMs;
  }

  #taken(afterMs: number, headers = ''): Said {
    return { afterMs, status: this.#chance.pick(['200 OK', '204 No Content']), headers };
  }

  #refused(status: string, freeAtMs: number, nowMs: number): Said {
    const afterMs = this.#chance.between(1, REFUSED_WITHIN_MS);
    const dateMs = Math.ceil(freeAtMs / 1000) * 1000;
    const seconds = Math.max(1, Math.ceil((freeAtMs - nowMs) / 1000));
    const isDate = this.#saysDates;
    const untilMs = isDate ? dateMs : nowMs + seconds * 1000;
    const headers = `retry-after: ${isDate ? new Date(dateMs).toUTCString() : seconds}\r\n`;
    return { afterMs, status, headers, asked: { untilMs, isDate } };
  }
}
