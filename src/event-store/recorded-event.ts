/**
 * A place in the log of all events, a safe integer. Later events have larger positions. Gaps mean nothing, since
 * EventStoreDB counts bytes.
 */
export type Position = number;

/** The stream and revision of an event. They identify it in every store that has it. */
export type EventRef = Pick<RecordedEvent, 'stream' | 'revision'>;

/** An event's stream and revision as a text, such as `account-7@3`. */
export function textOfRef({ stream, revision }: EventRef): string {
  return `${stream}@${revision}`;
}

export interface RecordedEvent {
  readonly position: Position;
  readonly stream: string;
  /** 0 for the first event of the stream, then 1, 2, … */
  readonly revision: number;
  readonly id: string;
  readonly type: string;
  /** Parsed JSON, or an `Unreadable` if the stored bytes are damaged or not JSON. */
  readonly data: unknown;
  readonly metadata: unknown;
  /** When the store recorded the event, in milliseconds since the epoch. */
  readonly recordedAtMs: number;
}

/** Decodes stored bytes as text. */
export function storedText({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString();
}

/** Replaces data or metadata that can't be read, so that one bad event never ends a subscription. */
export class Unreadable {
  readonly reason: string;
  /**
   * True if the bytes are not text. Nobody can record that, so the store is damaged; other bad events may be a
   * writer's.
   */
  readonly isDamage: boolean;
  constructor(reason: string, { isDamage = false } = {}) {
    this.reason = reason;
    this.isDamage = isDamage;
  }
}

/**
 * How many bytes of an event are parsed at most: a value may take twenty times the memory of its text. By default
 * EventStoreDB accepts 1 MiB in one append. It does not limit metadata, which may have 16 MiB; this service writes
 * about 300 bytes.
 */
export const MAX_BYTES = { data: 1024 * 1024, metadata: 64 * 1024 } as const;

/** Returns the replacement for data or metadata that is too long to be parsed; `undefined` if it is not. */
export function tooLong(what: keyof typeof MAX_BYTES, bytes: number): Unreadable | undefined {
  if (bytes <= MAX_BYTES[what]) return undefined;
  return new Unreadable(`${what} has ${bytes} bytes, more than ${MAX_BYTES[what]}`);
}

/** Parses stored data or metadata. */
export function parseStored(what: 'data' | 'metadata', text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return new Unreadable(`${what} is not JSON`); // the error's own message quotes personal data
  }
}

/** True if the event's bytes are certainly damaged. */
export function isDamaged({ data, metadata }: Pick<RecordedEvent, 'data' | 'metadata'>): boolean {
  return [data, metadata].some((part) => part instanceof Unreadable && part.isDamage);
}

/** The prefix of the streams in which EventStoreDB keeps the settings of other streams. */
export const SETTINGS_STREAMS = '$$';
const HIDING_SETTINGS = /"\$(?:tb|maxCount|maxAge)"/;

/** Returns the stream whose events these settings hide or will hide; `undefined` for all other events. */
export function streamHiddenBy({ stream, data }: Pick<RecordedEvent, 'stream' | 'data'>): string | undefined {
  if (!stream.startsWith(SETTINGS_STREAMS)) return undefined;
  const settings = data instanceof Uint8Array ? storedText(data) : JSON.stringify(data);
  return HIDING_SETTINGS.test(settings) ? stream.slice(SETTINGS_STREAMS.length) : undefined;
}

/** The first event that a stream still shows; none if it shows nothing. */
export interface FirstShown {
  readonly stream: string;
  readonly revision: number | undefined;
}

/** Says that the first events of a stream are missing, and what to do. */
export function missingBefore({ stream, revision }: FirstShown): string {
  const which = revision === undefined ? '' : ` before revision ${revision}`;
  return (
    `the events of ${stream}${which} are missing: if $maxCount, $maxAge or $tb is set in the ` +
    `metadata of that stream, remove it; if they were deleted, restore the event store from its backup`
  );
}

/**
 * The type of the event that marks the end of an erased stream; its revision is `ERASED_REVISION`. Only an engine that
 * keeps erased events until its log is cleaned up has such events.
 */
export const STREAM_ERASED = '$streamDeleted';
/** Higher than any other revision. */
export const ERASED_REVISION = Number.MAX_SAFE_INTEGER;

/**
 * True for the engine's own mark of an erasure. Any writer can append an event of that type, but not with that
 * revision.
 */
export function isErasure({ type, revision }: Pick<RecordedEvent, 'type' | 'revision'>): boolean {
  return type === STREAM_ERASED && revision === ERASED_REVISION;
}
