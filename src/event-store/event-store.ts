import type { EventMetadata } from '../domain/events.ts';

/**
 * A place in the log of all events. Later events have larger positions; gaps mean nothing (EventStoreDB
 * counts bytes). A safe integer.
 */
export type Position = number;

export interface NewEvent {
  /** UUID. Appending it again at the same place changes nothing. */
  readonly id: string;
  readonly type: string;
  readonly data: unknown;
  readonly metadata: EventMetadata;
}

export interface RecordedEvent {
  readonly position: Position;
  readonly stream: string;
  /** 0 for the first event of the stream, then 1, 2, … */
  readonly revision: number;
  readonly id: string;
  readonly type: string;
  /** What JSON.parse made of it; an `Unreadable` where the stored bytes are not JSON. */
  readonly data: unknown;
  readonly metadata: unknown;
  /** When the store took it, milliseconds. */
  readonly recordedAtMs: number;
}

/** Stands in for data or metadata that is not JSON, so that one bad event never ends a subscription. */
export class Unreadable {
  readonly reason: string;
  constructor(reason: string) {
    this.reason = reason;
  }
}

/**
 * The type of the event that stands for an erasure, in the erased stream, with the revision `ERASED_REVISION`: an
 * engine whose log keeps erased events until it is cleaned up hands it out after them. One that forgets them at
 * once has no such event.
 */
export const STREAM_ERASED = '$streamDeleted';
/** Above every revision that an event has. */
export const ERASED_REVISION = Number.MAX_SAFE_INTEGER;

/** `none`: the stream must not exist. `any`: no check. A number: the revision of its last event. */
export type ExpectedRevision = 'none' | 'any' | number;

export interface Append {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  /** At least one; recorded all together or not at all. */
  readonly events: readonly NewEvent[];
}

export type AppendResult =
  | { readonly kind: 'appended'; readonly revision: number; readonly position: Position }
  /** The stream's last revision is another one (`undefined`: the stream does not exist). Nothing was recorded. */
  | { readonly kind: 'conflict'; readonly actual: number | undefined }
  /** The stream was erased and takes no event again. */
  | { readonly kind: 'erased' };

/**
 * One step of a catch-up subscription. `events` may be empty: then it only moves the checkpoint or says that
 * the store is still there.
 */
export interface SubscriptionBatch {
  readonly events: readonly RecordedEvent[];
  /** Every matching event up to here has been handed over: a checkpoint that is safe to store. */
  readonly position: Position;
  /** No further event was there when this batch was read. */
  readonly caughtUp: boolean;
}

export interface SubscribeOptions {
  /** Events of streams whose name starts with one of these; all events where there is none. */
  readonly prefixes: readonly string[];
  /** Start behind this position; 0 for the very start. */
  readonly after: Position;
  /** Ends the iteration quietly. */
  readonly signal: AbortSignal;
  /** Most events in one batch; the adapter has a default. */
  readonly batchSize?: number;
}

/**
 * The log of everything that happened, with EventStoreDB's semantics.
 *
 * - `append`: each `Append` is atomic; several in one call are independent of each other (one may conflict
 *   while the rest is recorded), faster together, and recorded in the order given. Results stand in the same
 *   order. Appending events whose ids already stand at that very place answers `appended` with their place.
 *   It resolves once the events are durable.
 * - `readStream`: in order of revision, from `fromRevision` (default 0). Nothing for a stream that does not
 *   exist or was erased.
 * - `subscribe`: every event behind `after`, in order, without gap, then live. While idle it yields an empty
 *   batch every second or so, whose position is the log's end: whoever needs to know that the store is still
 *   there reads it off that. While the engine is away it waits, tries again and goes on where it was.
 * - `erase`: removes the stream's events for good; the stream takes no event again. An engine may keep the bytes
 *   until its log is cleaned up, and `subscribe` may hand them out until then (see `STREAM_ERASED`).
 * - `head`: the position of the last event that can be read, 0 for an empty store.
 * - `hasReached`: whether the log is that long. Of a position that `subscribe` or `append` told it is true for ever,
 *   also where it lies behind `head`, among the engine's own records; false tells of another log, or an older copy.
 * - While the engine can't be reached the other calls reject with `STORE_UNAVAILABLE`; an append that was
 *   answered so may have been recorded, and is safe to repeat with the same event ids.
 * - After `close` every call rejects with `STORE_CLOSED`.
 */
export interface EventStore {
  append(appends: readonly Append[]): Promise<AppendResult[]>;
  readStream(stream: string, options?: { readonly fromRevision?: number }): Promise<RecordedEvent[]>;
  /** The events of many streams at once, in the order asked for. */
  readStreams(streams: readonly string[]): Promise<RecordedEvent[][]>;
  isErased(stream: string): Promise<boolean>;
  subscribe(options: SubscribeOptions): AsyncIterable<SubscriptionBatch>;
  head(): Promise<Position>;
  hasReached(position: Position): Promise<boolean>;
  erase(stream: string): Promise<void>;
  close(): Promise<void>;
}

export interface GroupSettings {
  readonly prefixes: readonly string[];
  /** An event neither acknowledged, retried nor parked within this time is handed out again. */
  readonly ackTimeoutMs: number;
  /** An event that was handed out this often without an acknowledgement is parked. */
  readonly maxRetries: number;
}

export interface GroupEvent {
  readonly event: RecordedEvent;
  /** How often it was handed out before. */
  readonly retryCount: number;
}

export interface ParkedEvent {
  readonly event: RecordedEvent;
  readonly reason: string;
  readonly parkedAtMs: number;
}

/**
 * Competing consumers over the log (EventStoreDB's persistent subscription to `$all`).
 *
 * - `ensureGroup` creates the group at the very start of the log where it is missing and brings its settings
 *   up to date where it is not; it never moves it.
 * - `consume` hands each event to one consumer at a time, at least once, in no guaranteed order; at most
 *   `bufferSize` are out at one consumer. What a consumer that died held is handed out again after
 *   `ackTimeoutMs`.
 * - `ack` ends an event; `retry` hands it out again after `delayMs`; `park` sets it aside with a reason.
 *   Each counts only while this consumer holds the event.
 * - `parked` lists what was parked, oldest first; `replayParked` hands it all out again and says how many.
 * - While the engine is away a consumer waits and goes on by itself.
 */
export interface PersistentSubscriptions {
  ensureGroup(group: string, settings: GroupSettings): Promise<void>;
  consume(
    group: string,
    options: { readonly bufferSize: number; readonly signal: AbortSignal },
  ): GroupConsumer;
  parked(group: string): Promise<ParkedEvent[]>;
  replayParked(group: string): Promise<number>;
  close(): Promise<void>;
}

export interface GroupConsumer extends AsyncIterable<GroupEvent> {
  ack(events: readonly GroupEvent[]): Promise<void>;
  retry(event: GroupEvent, options: { readonly reason: string; readonly delayMs: number }): Promise<void>;
  park(event: GroupEvent, reason: string): Promise<void>;
}
