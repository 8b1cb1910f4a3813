import type { EventMetadata } from '../domain/events.ts';
import type { Position, RecordedEvent } from './recorded-event.ts';

export interface NewEvent {
  /** UUID. An event that is appended again at its place is not recorded twice. */
  readonly id: string;
  readonly type: string;
  /** A JSON value, or the `JsonText` of one. */
  readonly data: unknown;
  readonly metadata: EventMetadata;
}

/** A place of the store whose bytes are damaged. */
export interface Damage {
  readonly position: Position;
  /** `undefined` where it can't be made out which event is concerned: it may be any. */
  readonly event: { readonly stream: string; readonly revision: number } | undefined;
  readonly reason: string;
  /** Otherwise the event is text and no JSON, as a faulty writer might have recorded it. */
  readonly isCertain: boolean;
}

/** `none`: the stream must not exist. `any`: no check. A number: the revision of its last event. */
export type ExpectedRevision = 'none' | 'any' | number;

export interface Append {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  /** At least one; all are recorded, or none. */
  readonly events: readonly NewEvent[];
}

export type AppendResult =
  | { readonly kind: 'appended'; readonly revision: number; readonly position: Position }
  /** The stream has another last revision (`undefined`: it does not exist), and reads show it. Nothing was recorded. */
  | { readonly kind: 'conflict'; readonly actual: number | undefined }
  /** The stream was erased and takes no event again. */
  | { readonly kind: 'erased' };

/**
 * One step of a catch-up subscription. Without events it moves the checkpoint, or is a heartbeat of the store.
 */
export interface SubscriptionBatch {
  readonly events: readonly RecordedEvent[];
  /** Every matching event up to here was in this batch or an earlier one. It may be that of a record that no read shows. */
  readonly position: Position;
  /** The last known position up to `position` of an event that the log shows: only such a one is ever stored. */
  readonly checkpoint: Position;
  /** The log had no further event when this batch was read. */
  readonly caughtUp: boolean;
}

export interface SubscribeOptions {
  /** Events of streams whose name starts with one of these; all events where there is none. */
  readonly prefixes: readonly string[];
  /** Start after this position; 0 for the start of the log. */
  readonly after: Position;
  /** Ends the iteration without an error. */
  readonly signal: AbortSignal;
  /** The maximum number of events in one batch; each adapter has a default. */
  readonly batchSize?: number | undefined;
  /** Data and metadata are the stored bytes (`Uint8Array`), which nobody has parsed; `Unreadable` where there are none. */
  readonly unparsed?: boolean | undefined;
}

/** A part of a stream, in order of revision. */
export interface StreamRange {
  /** Default 0. */
  readonly fromRevision?: number;
  /** Default: all. */
  readonly limit?: number;
}

/** One step backwards through the log. */
export interface BackwardsBatch {
  /** Newest first. */
  readonly events: readonly RecordedEvent[];
  /** Every matching event from here on was in this batch or an earlier one: the next step is before this position. */
  readonly position: Position;
  /** There is no earlier event. */
  readonly atStart: boolean;
}

/**
 * The log of everything that happened, with EventStoreDB's semantics.
 *
 * - `append`: each `Append` is atomic; several in one call are independent of each other (one may conflict
 *   while the rest is recorded), faster together, and recorded in the order given. Results have the same order.
 *   Appending events that are already recorded at that place, by their ids, returns `appended` with that place.
 *   It resolves once the events are durable.
 * - `readStream`: in order of revision. Nothing for a stream that does not exist or was erased.
 * - `readLast`: the last event of a stream; `undefined` where `readStream` returns nothing.
 * - `subscribe`: every event after `after`, in order, without a gap, then live. While idle it yields an empty batch
 *   about every second, with the position of the log's end, as a heartbeat of the store. While the engine is
 *   unavailable it waits, retries, and continues where it was.
 * - `readBackwards`: the matching events before `before`, or those at the end of the log, newest first: at most `limit`,
 *   and fewer or none where much does not match, so that a step is short. Those of erased streams as in `subscribe`.
 * - `rewrite`: takes all events of a stream, in order, with other data, in place of what it holds, and gives those that
 *   differ another id; false, and nothing is changed, where the stream has more events by now, or was erased. An engine that can't change what it holds appends
 *   them anew (see `isRewritten`), and keeps and shows the former ones as it does those of an erased stream.
 * - `erase`: removes the stream's events permanently; the stream takes no event again. An engine may keep the bytes
 *   until its log is cleaned up, and `subscribe` may return the events until then (see `STREAM_ERASED`).
 * - `head`: the position of the last event that can be read, 0 for an empty store.
 * - `hasReached`: whether the log is that long. Always true for a checkpoint that `subscribe` has returned, and for the
 *   position of an event; false means another log, or an older copy of this one.
 * - `findDamage` reads everything that is recorded, in short steps, and returns the damage by position; nothing where
 *   the engine checks its files itself. Damaged events are returned by the other reads in their place, as `Unreadable`,
 *   as far as they are found.
 * - While the engine is unavailable the other calls reject with `STORE_UNAVAILABLE`; such an append may have been
 *   recorded, and is safe to repeat with the same event ids.
 * - After `close` every call rejects with `STORE_CLOSED`.
 */
export interface EventStore {
  append(appends: readonly Append[]): Promise<AppendResult[]>;
  readStream(stream: string, range?: StreamRange): Promise<RecordedEvent[]>;
  readLast(stream: string): Promise<RecordedEvent | undefined>;
  /** The events of each of these streams, in the order of the names. */
  readStreams(streams: readonly string[]): Promise<RecordedEvent[][]>;
  isErased(stream: string): Promise<boolean>;
  subscribe(options: SubscribeOptions): AsyncIterable<SubscriptionBatch>;
  readBackwards(options: {
    readonly prefixes: readonly string[];
    readonly before?: Position | undefined;
    readonly limit: number;
  }): Promise<BackwardsBatch>;
  head(): Promise<Position>;
  /** As `head`, read on the calling thread: only where the log is on this machine. */
  end?(): Position;
  hasReached(position: Position): Promise<boolean>;
  findDamage(signal?: AbortSignal): Promise<readonly Damage[]>;
  rewrite(events: readonly RecordedEvent[]): Promise<boolean>;
  erase(stream: string): Promise<void>;
  close(): Promise<void>;
}

export interface GroupSettings {
  readonly prefixes: readonly string[];
  /** An event that is neither acknowledged, retried nor parked within this time is handed out again. */
  readonly ackTimeoutMs: number;
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

/** Parked events that are read at once: each has its data. */
export const MAX_PARKED_READ = 1_000;

export interface GroupStatus {
  /** Every matching event up to here was acknowledged or parked. */
  readonly position: Position;
  /** Parked events, also those of streams that were erased since. */
  readonly parked: number;
}

export interface ConsumeOptions {
  readonly bufferSize: number;
  readonly signal: AbortSignal;
  /** Called with `undefined` when the iteration is connected to the group, and with the reason when it no longer is. */
  readonly onState?: ((missing: string | undefined) => void) | undefined;
}

/**
 * Competing consumers over the log (EventStoreDB's persistent subscription to `$all`).
 *
 * - `ensureGroup` creates a missing group at the start of the log, and updates the settings of an existing one
 *   without moving it.
 * - `consume` hands each event to one consumer at a time, at least once, in no guaranteed order; one consumer has at
 *   most `bufferSize` unanswered. Those of a consumer that died are handed out again after `ackTimeoutMs`.
 * - `ack` ends an event; `retry` hands it out again after `delayMs`; `park` parks it with a reason. Each has an
 *   effect only while this consumer holds the event.
 * - `parked` lists the parked events, oldest first: `MAX_PARKED_READ` unless a `limit` is given; `replayParked` hands them all out again and returns how many.
 * - `status` says how far a group is, without loading an event: metrics read it often. What was acknowledged may show
 *   in it a second later. `undefined` where there is no such group.
 * - While the engine is unavailable a consumer waits, and continues automatically.
 */
export interface PersistentSubscriptions {
  ensureGroup(group: string, settings: GroupSettings): Promise<void>;
  consume(group: string, options: ConsumeOptions): GroupConsumer;
  parked(group: string, limit?: number): Promise<ParkedEvent[]>;
  status(group: string): Promise<GroupStatus | undefined>;
  replayParked(group: string): Promise<number>;
  close(): Promise<void>;
}

export interface GroupConsumer extends AsyncIterable<GroupEvent> {
  ack(events: readonly GroupEvent[]): Promise<void>;
  retry(event: GroupEvent, options: { readonly reason: string; readonly delayMs: number }): Promise<void>;
  park(event: GroupEvent, reason: string): Promise<void>;
}
