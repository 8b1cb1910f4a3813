import type { PersistentSubscriptionToAllResolvedEvent } from '@eventstore/db-client';
import { eventBytes, MAX_BATCH_BYTES } from '../../../event-store/batch-bytes.ts';
import type { GroupEvent, GroupSettings } from '../../../event-store/event-store.ts';
import type { Position, RecordedEvent } from '../../../event-store/recorded-event.ts';

/** An event as the server sends it to a consumer, and as it is acknowledged or parked. */
export type Message = PersistentSubscriptionToAllResolvedEvent;

/** The server checks for expired message time-outs once a second. */
const SERVER_DELAY_MS = 2_000;
/** Events that wait at one consumer for their retry, besides those in its buffer; further ones are parked. */
export const MAX_DELAYED = 1_000;
const MAX_DELAYED_BYTES = 32 * MAX_BATCH_BYTES;

interface Entry {
  readonly event: RecordedEvent;
  readonly bytes: number;
  message: Message;
  readonly retryCount: number;
  /** When the message time-out passes: the server then sends the event again, to this consumer or another one. */
  expiresAtMs: number;
  /** `buffered`: not handed out yet; `out`: handed out; `delayed`: to be handed out again at `dueAtMs`. */
  readonly state: 'buffered' | 'out' | 'delayed';
  readonly dueAtMs: number;
  readonly reason: string;
}

export interface ToPark {
  readonly message: Message;
  readonly reason: string;
}

/**
 * The events that the server has sent to one consumer, and that this has neither acknowledged nor parked.
 *
 * EventStoreDB's `nack(retry)` has no delay. So an event to be retried later is kept here, unanswered, until it is due.
 * Each time its message time-out passes the server sends it again. While it comes to this consumer, the consumer keeps
 * it; where it goes to another one, this one forgets it. Times are milliseconds of the clock.
 */
export class EventStoreDbInFlightEvents {
  readonly #bufferSize: number;
  readonly #ackTimeoutMs: number;
  readonly #entries = new Map<Position, Entry>();
  /** Entries by state, and their `eventBytes`. */
  readonly #counts = { buffered: 0, out: 0, delayed: 0 };
  readonly #bytes = { buffered: 0, out: 0, delayed: 0 };
  /** Positions to hand out, in order; some may have been dropped since. */
  #queue: Position[] = [];
  /** No entry is due or expires before this time. */
  #nextCheckAtMs = Number.POSITIVE_INFINITY;

  /** At most `bufferSize` are handed out at a time. */
  constructor(bufferSize: number, { ackTimeoutMs }: Pick<GroupSettings, 'ackTimeoutMs'>) {
    this.#bufferSize = bufferSize;
    this.#ackTimeoutMs = ackTimeoutMs;
  }

  /** Whether the buffered and the handed-out events make a batch by their bytes: no further one should be received. */
  get isFull(): boolean {
    return this.#bytes.buffered + this.#bytes.out >= MAX_BATCH_BYTES;
  }

  receive(event: RecordedEvent, message: Message, nowMs: number): void {
    const existing = this.#entries.get(event.position);
    const expiresAtMs = nowMs + this.#ackTimeoutMs;
    this.#checkAt(expiresAtMs);
    if (existing !== undefined && existing.state !== 'out') {
      Object.assign(existing, { message, expiresAtMs }); // not handed out since: this counts as no further time
      if (existing.state === 'delayed') this.#checkAt(existing.dueAtMs); // it may be due already
      return;
    }
    const retryCount = existing === undefined ? message.retryCount : existing.retryCount + 1;
    this.#drop(existing);
    const bytes = eventBytes(event);
    this.#add({ event, bytes, message, retryCount, expiresAtMs, state: 'buffered', dueAtMs: 0, reason: '' });
  }

  /** The next event to hand out; undefined where there is none, or `bufferSize` are out. */
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

  /** Ends an event that is out, and returns the message to answer; undefined where it is no longer this consumer's. */
  end({ event }: GroupEvent, nowMs: number): Message | undefined {
    const entry = this.#outAt(event.position, nowMs);
    this.#drop(entry);
    return entry?.message;
  }

  /**
   * Keeps an event that is out until `delayMs` have passed. Returns the oldest that is kept, to be parked, where more
   * than `MAX_DELAYED` or `MAX_DELAYED_BYTES` are delayed.
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

  /** How long no entry is due or expires; at least 1. */
  idleMs(nowMs: number): number {
    return Math.max(1, this.#nextCheckAtMs - nowMs);
  }

  /**
   * The connection broke: the server sends everything again, to any consumer. Delayed events are remembered with
   * their due times, in case they come to this one.
   */
  disconnected(): void {
    for (const entry of this.#entries.values()) {
      if (entry.state === 'delayed') entry.expiresAtMs = 0;
      else this.#drop(entry);
    }
    this.#queue = [];
  }

  /** Buffers delayed events that are due, and drops those that the server must have sent to another consumer. */
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
