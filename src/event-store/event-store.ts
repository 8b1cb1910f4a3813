import type { EventMetadata } from '../domain/events.ts';
import type { Position, RecordedEvent } from './recorded-event.ts';

export interface NewEvent {
  /** A UUID. Appending an event with the same id again at the same place does not record it twice. */
  readonly id: string;
  readonly type: string;
  /** A JSON value, or the `JsonText` of one. */
  readonly data: unknown;
  readonly metadata: EventMetadata;
}

/** An event that can't be read. */
export interface Damage {
  readonly position: Position;
  /** The damaged event; `undefined` if it is unknown and may be any. */
  readonly event: { readonly stream: string; readonly revision: number } | undefined;
  readonly reason: string;
  /** False if the event is text but not JSON, as a faulty writer might have recorded it. */
  readonly isCertain: boolean;
}

/** `none`: the stream must not exist. `any`: no check. A number: the revision that its last event must have. */
export type ExpectedRevision = 'none' | 'any' | number;

export interface Append {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  /** At least one event. All are recorded, or none. */
  readonly events: readonly NewEvent[];
}

export type AppendResult =
  | { readonly kind: 'appended'; readonly revision: number; readonly position: Position }
  /**
   * Nothing was recorded: the stream's last revision is `actual` (`undefined` if it does not exist), and reads show it.
   */
  | { readonly kind: 'conflict'; readonly actual: number | undefined }
  /** The stream was erased and never accepts another event. */
  | { readonly kind: 'erased' };

/**
 * One step of a catch-up subscription. A batch without events moves the checkpoint or is a heartbeat of the store.
 */
export interface SubscriptionBatch {
  readonly events: readonly RecordedEvent[];
  /**
   * Every matching event up to here was in this batch or an earlier one. It may belong to a record that reads don't
   * show.
   */
  readonly position: Position;
  /** The position, up to `position`, of the last known event that reads show. Only this one may be stored. */
  readonly checkpoint: Position;
  /** True if the log had no further event when this batch was read. */
  readonly caughtUp: boolean;
}

export interface SubscribeOptions {
  /** Selects events of streams whose name starts with one of these; all events if the list is empty. */
  readonly prefixes: readonly string[];
  /** Start after this position; 0 for the start of the log. */
  readonly after: Position;
  /** Ends the iteration without an error. */
  readonly signal: AbortSignal;
  /** The maximum number of events in one batch; each adapter has a default. */
  readonly batchSize?: number | undefined;
  /** Returns data and metadata as the stored bytes (`Uint8Array`), without parsing; `Unreadable` if there are none. */
  readonly unparsed?: boolean | undefined;
}

/** True if these prefixes select the stream. The engine's own streams are never selected. */
export function isSelected(stream: string, prefixes: readonly string[]): boolean {
  if (prefixes.length === 0) return !stream.startsWith('$');
  return prefixes.some((prefix) => stream.startsWith(prefix));
}

/** A part of a stream, in order of revision. */
export interface StreamRange {
  /** The first revision; by default 0. */
  readonly fromRevision?: number;
  /** The maximum number of events; by default all. */
  readonly limit?: number;
}

/** One step backwards through the log. */
export interface BackwardsBatch {
  /** The events, newest first. */
  readonly events: readonly RecordedEvent[];
  /**
   * Every matching event from here on was in this batch or an earlier one. The next step reads before this position.
   */
  readonly position: Position;
  /** True if there is no earlier event. */
  readonly atStart: boolean;
}

/**
 * The log of everything that happened, with EventStoreDB's semantics.
 *
 * - `append`: each `Append` is atomic. Several in one call are independent of each other (one may conflict while the
 *   rest is recorded), faster than single calls, and recorded in the given order. Results have the same order.
 *   Appending events that are already recorded at that place, by their ids, returns `appended` with that place. It
 *   resolves once the events are durable.
 * - `readStream` returns events in order of revision; none for a stream that does not exist or was erased.
 * - `readLast` returns the last event of a stream; `undefined` if `readStream` would return nothing.
 * - `subscribe` yields every event after `after`, in order and without a gap, then live events. While idle it yields an
 *   empty batch about every second, with the position of the log's end, as a heartbeat of the store. While the engine
 *   is unavailable it waits and retries, then continues where it stopped.
 * - `readBackwards` returns the matching events before `before`, or those at the end of the log, newest first. It
 *   returns at most `limit` events, and fewer or none if many don't match, so that a step is short. Events of erased
 *   streams appear as in `subscribe`.
 * - `rewrite` replaces the data of all events of a stream, given in order, and gives those that differ a new id. It
 *   returns false, with nothing changed, if the stream has got more events or was erased. An engine that can't change
 *   events appends them again (see `isRewritten`), and keeps and shows the old ones like those of an erased stream.
 * - `erase` removes the stream's events permanently, and the stream never accepts another one. An engine may keep the
 *   bytes until its log is cleaned up, and `subscribe` may return the events until then (see `STREAM_ERASED`).
 * - `head` returns the position of the last event that can be read; 0 for an empty store. A checkpoint that `subscribe`
 *   has returned, or the position of an event, is beyond it only in another log, or in an older copy of this one.
 * - Reads return an event whose bytes are not what was recorded in its place, as `Unreadable`, if they notice that. Where a
 *   file cannot be read at all, they reject with `STORE_DAMAGED`, which names it.
 * - While the engine is unavailable the other calls reject with `STORE_UNAVAILABLE`. An append that rejects so may have
 *   been recorded, and is safe to repeat with the same event ids.
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
  /** Returns `head` synchronously. Only a log on this machine has it. */
  end?(): Position;
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
  /** How often the event was handed out before. */
  readonly retryCount: number;
}

export interface ParkedEvent {
  readonly event: RecordedEvent;
  readonly reason: string;
  readonly parkedAtMs: number;
}

/** How many parked events are read at once. Each contains its data. */
export const MAX_PARKED_READ = 1_000;

export interface GroupStatus {
  /** Every matching event up to here was acknowledged or parked. */
  readonly position: Position;
  /** The number of parked events, including those of streams that have been erased since. */
  readonly parked: number;
}

export interface ConsumeOptions {
  readonly bufferSize: number;
  readonly signal: AbortSignal;
  /** Called with `undefined` when the consumer is connected to the group, and with the reason when it no longer is. */
  readonly onState?: ((missing: string | undefined) => void) | undefined;
}

/**
 * Competing consumers of the log (EventStoreDB's persistent subscription to `$all`).
 *
 * - `ensureGroup` creates a missing group at the start of the log, and updates the settings of an existing one without
 *   moving it.
 * - `consume` hands each event to one consumer at a time, at least once, in no guaranteed order. One consumer has at
 *   most `bufferSize` unanswered events. Those of a consumer that died are handed out again after `ackTimeoutMs`.
 * - `ack` ends an event; `retry` hands it out again after `delayMs`; `park` parks it with a reason. Each has an effect
 *   only while this consumer holds the event.
 * - `parked` lists the parked events, oldest first, at most `MAX_PARKED_READ` unless a `limit` is given. `replayParked`
 *   hands them all out again and returns how many there were.
 * - `status` returns the group's progress without loading an event, since metrics read it often. An acknowledged event
 *   may show in it a second later. It is `undefined` if there is no such group.
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
