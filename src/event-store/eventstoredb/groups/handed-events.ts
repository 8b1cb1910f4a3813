import type { PersistentSubscriptionToAllResolvedEvent } from '@eventstore/db-client';
import { eventBytes, MAX_BATCH_BYTES } from '../../batch-bytes.ts';
import type { GroupEvent, Position, RecordedEvent } from '../../event-store.ts';
import type { GroupLimits } from './settings.ts';

/** How the server handed the event over; what it is answered with. */
export type ServerEvent = PersistentSubscriptionToAllResolvedEvent;

/** The server looks for passed time-outs once a second. */
const SERVER_DELAY_MS = 2_000;
/** Of the events that are kept back for a later try. */
const MAX_HELD_BYTES = 32 * MAX_BATCH_BYTES;

interface Entry {
  readonly event: RecordedEvent;
  readonly bytes: number;
  delivery: ServerEvent;
  /** How often it was handed out before. */
  readonly retryCount: number;
  /** When the server hands it out again, here or elsewhere. */
  expiresAtMs: number;
  /** In the buffer, handed out, or kept back until it is due. */
  readonly state: 'waiting' | 'out' | 'held';
  readonly dueAtMs: number;
  readonly reason: string;
}

export interface Ended {
  readonly delivery: ServerEvent;
  readonly reason: string;
}

/**
 * What the server has handed to one consumer and has not been answered for. The server knows no delay: an event
 * that is to be tried later is held here, and stays this consumer's as long as the server hands it back each
 * time its time-out passes. Times are milliseconds of the clock.
 */
export class EventStoreDbHandedEvents {
  readonly #bufferSize: number;
  readonly #entries = new Map<Position, Entry>();
  /** How many entries are in each state. */
  readonly #counts = { waiting: 0, out: 0, held: 0 };
  /** As `eventBytes` counts them. */
  readonly #bytes = { waiting: 0, out: 0, held: 0 };
  /** Positions to hand out, in order; some may have ended meanwhile. */
  #queue: Position[] = [];
  #limits: GroupLimits = { ackTimeoutMs: 0, maxRetries: 1 };
  /** Before this nothing falls due or expires. */
  #lookAtMs = Number.POSITIVE_INFINITY;

  /** At most `bufferSize` are out at a time. */
  constructor(bufferSize: number) {
    this.#bufferSize = bufferSize;
  }

  set limits(limits: GroupLimits) {
    this.#limits = limits;
  }

  /** Whether what waits and is out makes a batch: the rest may stay where it is. */
  get isFull(): boolean {
    return this.#bytes.waiting + this.#bytes.out >= MAX_BATCH_BYTES;
  }

  /** Takes what the server handed over; says when it is to be parked instead. */
  arrive(event: RecordedEvent, delivery: ServerEvent, nowMs: number): Ended | undefined {
    const known = this.#entries.get(event.position);
    const expiresAtMs = nowMs + this.#limits.ackTimeoutMs;
    this.#lookAtMs = Math.min(this.#lookAtMs, expiresAtMs);
    if (known !== undefined && known.state !== 'out') {
      Object.assign(known, { delivery, expiresAtMs }); // nobody had it: that is no further time
      if (known.state === 'held') this.#lookAtMs = Math.min(this.#lookAtMs, known.dueAtMs); // it may be due already
      return undefined;
    }
    const retryCount = known === undefined ? delivery.retryCount : known.retryCount + 1;
    this.#drop(known);
    if (retryCount >= this.#limits.maxRetries) {
      return { delivery, reason: `handed out ${retryCount} times without an acknowledgement` };
    }
    const bytes = eventBytes(event);
    this.#keep({ event, bytes, delivery, retryCount, expiresAtMs, state: 'waiting', dueAtMs: 0, reason: '' });
    return undefined;
  }

  /** The next one to hand out, where there is room. */
  next(nowMs: number): GroupEvent | undefined {
    if (nowMs >= this.#lookAtMs) this.#release(nowMs);
    while (this.#counts.out < this.#bufferSize) {
      const position = this.#queue.shift();
      if (position === undefined) return undefined;
      const entry = this.#entries.get(position);
      if (entry?.state !== 'waiting') continue;
      this.#drop(entry);
      this.#keep({ ...entry, state: 'out' });
      return { event: entry.event, retryCount: entry.retryCount };
    }
    return undefined;
  }

  /** Ends an event that is out here, and says what to answer the server; undefined where it is not. */
  end({ event }: GroupEvent, nowMs: number): ServerEvent | undefined {
    const entry = this.#outAt(event.position, nowMs);
    this.#drop(entry);
    return entry?.delivery;
  }

  /**
   * Keeps an event that is out back until it is due. What can not be kept is to be parked: it was handed out as
   * often as allowed, or is the oldest of more than `most`, or of more than `MAX_HELD_BYTES`.
   */
  hold(
    { event }: GroupEvent,
    retry: {
      readonly reason: string;
      readonly delayMs: number;
      readonly nowMs: number;
      readonly most: number;
    },
  ): Ended | undefined {
    const { reason, delayMs, nowMs, most } = retry;
    const entry = this.#outAt(event.position, nowMs);
    if (entry === undefined) return undefined;
    this.#drop(entry);
    const retryCount = entry.retryCount + 1;
    if (retryCount >= this.#limits.maxRetries) return { delivery: entry.delivery, reason };
    const dueAtMs = nowMs + delayMs;
    this.#lookAtMs = Math.min(this.#lookAtMs, dueAtMs);
    this.#keep({ ...entry, state: 'held', retryCount, dueAtMs, reason });
    if (this.#counts.held <= most && this.#bytes.held <= MAX_HELD_BYTES) return undefined;
    const oldest = this.#entries.values().find(({ state }) => state === 'held');
    this.#drop(oldest);
    return oldest;
  }

  /** How long nothing falls due. */
  quietMs(nowMs: number): number {
    return Math.max(1, this.#lookAtMs - nowMs);
  }

  /** The connection is gone, and with it what was handed over. What is held is known again when it comes back. */
  disconnected(): void {
    for (const entry of this.#entries.values()) {
      if (entry.state === 'held') entry.expiresAtMs = 0;
      else this.#drop(entry);
    }
    this.#queue = [];
  }

  /** Lets those wait that have fallen due, and forgets those that the server gave to another by now. */
  #release(nowMs: number): void {
    this.#lookAtMs = Number.POSITIVE_INFINITY;
    for (const entry of [...this.#entries.values()]) {
      const { state, dueAtMs, expiresAtMs } = entry;
      const forgetAtMs = state === 'waiting' ? expiresAtMs : Math.max(expiresAtMs, dueAtMs) + SERVER_DELAY_MS;
      if (nowMs >= forgetAtMs) {
        this.#drop(entry);
      } else if (state === 'held' && nowMs >= dueAtMs && nowMs < expiresAtMs) {
        this.#drop(entry);
        this.#keep({ ...entry, state: 'waiting' });
      } else {
        const nextMs = state === 'held' && nowMs < dueAtMs ? dueAtMs : forgetAtMs;
        this.#lookAtMs = Math.min(this.#lookAtMs, nextMs);
      }
    }
  }

  #outAt(position: Position, nowMs: number): Entry | undefined {
    const entry = this.#entries.get(position);
    return entry?.state === 'out' && nowMs < entry.expiresAtMs ? entry : undefined;
  }

  #keep(entry: Entry): void {
    this.#entries.set(entry.event.position, entry);
    this.#counts[entry.state]++;
    this.#bytes[entry.state] += entry.bytes;
    if (entry.state === 'waiting') this.#queue.push(entry.event.position);
  }

  #drop(entry: Entry | undefined): void {
    if (entry === undefined || !this.#entries.delete(entry.event.position)) return;
    this.#counts[entry.state]--;
    this.#bytes[entry.state] -= entry.bytes;
  }
}
