import type { PersistentSubscriptionToAllResolvedEvent } from '@eventstore/db-client';
import { eventBytes, MAX_BATCH_BYTES } from '../../../event-store/batch-bytes.ts';
import type { GroupEvent, GroupSettings } from '../../../event-store/event-store.ts';
import type { Position, RecordedEvent } from '../../../event-store/recorded-event.ts';

/** An event as the server sends it. It is acknowledged or parked by this message. */
export type Message = PersistentSubscriptionToAllResolvedEvent;

/** The server checks for expired message time-outs once a second. */
const SERVER_DELAY_MS = 2_000;
/** How many events may wait at one consumer for their retry, besides those in its buffer. Others are parked. */
export const MAX_DELAYED = 1_000;
const MAX_DELAYED_BYTES = 32 * MAX_BATCH_BYTES;

interface Entry {
  readonly event: RecordedEvent;
  readonly bytes: number;
  message: Message;
  readonly retryCount: number;
  /** The time at which the message times out. The server then sends the event again, to this consumer or another one. */
  expiresAtMs: number;
  /** `buffered` is not handed out yet, `out` is, and `delayed` is to be handed out again at `dueAtMs`. */
  readonly state: 'buffered' | 'out' | 'delayed';
  readonly dueAtMs: number;
  readonly reason: string;
}

export interface ToPark {
  readonly message: Message;
  readonly reason: string;
}

/**
 * The events that the server has sent to one consumer, and that it has neither acknowledged nor parked.
 *
 * EventStoreDB's `nack(retry)` has no delay. So an event to be retried later is kept here, unanswered, until it is due.
 * Each time its message times out, the server sends it again. If it comes to this consumer, the consumer keeps it. If it
 * goes to another one, this one forgets it. Times are milliseconds of the clock.
 */
export class EventStoreDbInFlightEvents {
  readonly #bufferSize: number;
  readonly #ackTimeoutMs: number;
  readonly #entries = new Map<Position, Entry>();
  /** The number of entries in each state. */
  readonly #counts = { buffered: 0, out: 0, delayed: 0 };
  /** The `eventBytes` of the entries in each state. */
  readonly #bytes = { buffered: 0, out: 0, delayed: 0 };
  /** The positions to hand out, in order. Some may have been dropped since. */
  #queue: Position[] = [];
  /** No entry is due or expires before this time. */
  #nextCheckAtMs = Number.POSITIVE_INFINITY;

  /** Hands out at most `bufferSize` events at a time. */
  constructor(bufferSize: number, { ackTimeoutMs }: Pick<GroupSettings, 'ackTimeoutMs'>) {
    this.#bufferSize = bufferSize;
    this.#ackTimeoutMs = ackTimeoutMs;
  }

  /** True if the bytes of the buffered and handed-out events make a batch. Then no further one should be received. */
  get isFull(): boolean {
    return this.#bytes.buffered + this.#bytes.out >= MAX_BATCH_BYTES;
  }

  receive(event: RecordedEvent, message: Message, nowMs: number): void {
    const existing = this.#entries.get(event.position);
    const expiresAtMs = nowMs + this.#ackTimeoutMs;
    this.#checkAt(expiresAtMs);
    if (existing !== undefined && existing.state !== 'out') {
      Object.assign(existing, { message, expiresAtMs }); // it was not handed out since, so this is no retry
      if (existing.state === 'delayed') this.#checkAt(existing.dueAtMs); // it may be due already
      return;
    }
    const retryCount = existing === undefined ? message.retryCount : existing.retryCount + 1;
    this.#drop(existing);
    const bytes = eventBytes(event);
    this.#add({ event, bytes, message, retryCount, expiresAtMs, state: 'buffered', dueAtMs: 0, reason: '' });
  }

  /** Returns the next event to hand out; `undefined` if there is none, or if `bufferSize` are out. */
  next(nowMs: number): GroupEvent | undefined {
    if (nowMs >= this.#nextCheckAtMs) this.#check(nowMs);
    while (this.#counts.out < this.#bufferSize) {
      const position = this.#queue.shift();
      if (position === undefined) return undefined;
      const entry = this.#entries.get(position);
      if (entry?.state !== 'buffered') continue;
      this.#drop(entry);
      this.#add({ ...entry, state: 'out' });
      return { event: entry.event, retryCount: entry.retryCount };
    }
    return undefined;
  }

  /** Ends an event that is out. Returns the message to answer; `undefined` if the event is no longer this consumer's. */
  end({ event }: GroupEvent, nowMs: number): Message | undefined {
    const entry = this.#outAt(event.position, nowMs);
    this.#drop(entry);
    return entry?.message;
  }

  /**
   * Keeps an event that is out until `delayMs` have passed. If more than `MAX_DELAYED` or `MAX_DELAYED_BYTES` are kept,
   * returns the oldest one, which must be parked.
   */
  delay(
    { event }: GroupEvent,
    retry: { readonly reason: string; readonly delayMs: number; readonly nowMs: number },
  ): ToPark | undefined {
    const { reason, delayMs, nowMs } = retry;
    const entry = this.#outAt(event.position, nowMs);
    if (entry === undefined) return undefined;
    this.#drop(entry);
    const dueAtMs = nowMs + delayMs;
    this.#checkAt(dueAtMs);
    this.#add({ ...entry, state: 'delayed', retryCount: entry.retryCount + 1, dueAtMs, reason });
    if (this.#counts.delayed <= MAX_DELAYED && this.#bytes.delayed <= MAX_DELAYED_BYTES) return undefined;
    const oldest = this.#entries.values().find(({ state }) => state === 'delayed');
    this.#drop(oldest);
    return oldest;
  }

  /** Returns for how long no entry is due or expires; at least 1. */
  idleMs(nowMs: number): number {
    return Math.max(1, this.#nextCheckAtMs - nowMs);
  }

  /**
   * Called when the connection breaks. The server sends everything again, to any consumer. Delayed events are remembered
   * with their due times, in case they come to this one.
   */
  disconnected(): void {
    for (const entry of this.#entries.values()) {
      if (entry.state === 'delayed') entry.expiresAtMs = 0;
      else this.#drop(entry);
    }
    this.#queue = [];
  }

  /** Buffers delayed events that are due, and drops events that the server must have sent to another consumer. */
  #check(nowMs: number): void {
    this.#nextCheckAtMs = Number.POSITIVE_INFINITY;
    for (const entry of [...this.#entries.values()]) {
      const { state, dueAtMs, expiresAtMs } = entry;
      const dropAtMs = state === 'buffered' ? expiresAtMs : Math.max(expiresAtMs, dueAtMs) + SERVER_DELAY_MS;
      if (nowMs >= dropAtMs) {
        this.#drop(entry);
      } else if (state === 'delayed' && nowMs >= dueAtMs && nowMs < expiresAtMs) {
        this.#drop(entry);
        this.#add({ ...entry, state: 'buffered' });
      } else {
        this.#checkAt(state === 'delayed' && nowMs < dueAtMs ? dueAtMs : dropAtMs);
      }
    }
  }

  #checkAt(ms: number): void {
    this.#nextCheckAtMs = Math.min(this.#nextCheckAtMs, ms);
  }

  #outAt(position: Position, nowMs: number): Entry | undefined {
    const entry = this.#entries.get(position);
    return entry?.state === 'out' && nowMs < entry.expiresAtMs ? entry : undefined;
  }

  #add(entry: Entry): void {
    this.#entries.set(entry.event.position, entry);
    this.#counts[entry.state]++;
    this.#bytes[entry.state] += entry.bytes;
    if (entry.state === 'buffered') this.#queue.push(entry.event.position);
  }

  #drop(entry: Entry | undefined): void {
    if (entry === undefined || !this.#entries.delete(entry.event.position)) return;
    this.#counts[entry.state]--;
    this.#bytes[entry.state] -= entry.bytes;
  }
}
