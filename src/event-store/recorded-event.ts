/**
 * A place in the log of all events. Later events have larger positions; gaps mean nothing (EventStoreDB
 * counts bytes). A safe integer.
 */
export type Position = number;

export interface RecordedEvent {
  readonly position: Position;
  readonly stream: string;
  /** 0 for the first event of the stream, then 1, 2, … */
  readonly revision: number;
  readonly id: string;
  readonly type: string;
  /** Parsed JSON; an `Unreadable` where the stored bytes are not JSON, or damaged. */
  readonly data: unknown;
  readonly metadata: unknown;
  /** When the store recorded it, milliseconds. */
  readonly recordedAtMs: number;
}

/** Of stored bytes, the text. */
export function storedText({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString();
}

/** In place of data or metadata that can't be read, so that one bad event never ends a subscription. */
export class Unreadable {
  readonly reason: string;
  /** Its bytes are no text, which nobody can record: damage of the store. Other bad events may be their writer's. */
  readonly isDamage: boolean;
  constructor(reason: string, { isDamage = false } = {}) {
    this.reason = reason;
    this.isDamage = isDamage;
  }
}

/** Whether the event's bytes surely are damaged. */
export function isDamaged({ data, metadata }: Pick<RecordedEvent, 'data' | 'metadata'>): boolean {
  return [data, metadata].some((part) => part instanceof Unreadable && part.isDamage);
}

/**
 * The type of the event that marks the end of an erased stream, with the revision `ERASED_REVISION`. Only an engine
 * that keeps erased events until its log is cleaned up has such events.
 */
export const STREAM_ERASED = '$streamDeleted';
/** Higher than any other revision. */
export const ERASED_REVISION = Number.MAX_SAFE_INTEGER;

/** Whether it is the engine's own mark of an erasure: any writer can append an event of that type, but not there. */
export function isErasure({ type, revision }: Pick<RecordedEvent, 'type' | 'revision'>): boolean {
  return type === STREAM_ERASED && revision === ERASED_REVISION;
}
