import { world } from '../base/world.ts';
import {
  type DomainEvent,
  type DomainEventType,
  type EventMetadata,
  SCHEMA_VERSION,
} from '../domain/events.ts';
import { formatDateTime } from '../domain/values/date-time.ts';
import type { NewEvent } from './event-store.ts';
import { storedText } from './recorded-event.ts';

/** The person or part that causes an event, and the command. Both become part of the event's metadata. */
export interface Author {
  readonly actor: string;
  /** The operating system's user, if a command was run. */
  readonly osUser?: string;
  readonly command: string;
  /** The same for all events of one command; by default a new UUID. */
  readonly correlationId?: string;
  /** The event or command that led to this one; by default the correlation id. */
  readonly causationId?: string;
}

/** Makes an event to append, with a random id. `atMs` is the time of the command's clock. */
export function newEvent(event: DomainEvent, author: Author, atMs: number): NewEvent {
  return newEventWith(metadataOf(author, atMs), event);
}

/** A domain event whose data may be a `JsonText`. */
export interface RecordableEvent {
  readonly type: DomainEventType;
  readonly data: unknown;
}

/** Makes an event like `newEvent`, but with metadata that the events of one step share. */
export function newEventWith(metadata: EventMetadata, { type, data }: RecordableEvent): NewEvent {
  return { id: world.randomUUID(), type, data, metadata };
}

export function metadataOf(author: Author, atMs: number): EventMetadata {
  const correlationId = author.correlationId ?? world.randomUUID();
  return {
    schema_version: SCHEMA_VERSION,
    at: formatDateTime(atMs),
    actor: author.actor,
    ...(author.osUser === undefined ? {} : { os_user: author.osUser }),
    command: author.command,
    correlation_id: correlationId,
    causation_id: author.causationId ?? correlationId,
  };
}

/** JSON as text. A store records the text as it is; it is parsed once, when its value is first read. */
export class JsonText {
  /** UTF-8. */
  readonly bytes: Uint8Array;
  #value: unknown;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  get text(): string {
    return storedText(this.bytes);
  }

  get value(): unknown {
    this.#value ??= JSON.parse(this.text);
    return this.#value;
  }
}

/** Returns the JSON to store for the data of a new event. */
export function jsonText(data: unknown): string {
  return data instanceof JsonText ? data.text : (JSON.stringify(data) ?? 'null');
}

/** Returns the same JSON as UTF-8. */
export function jsonUtf8(data: unknown): Uint8Array {
  return data instanceof JsonText ? data.bytes : Buffer.from(jsonText(data));
}

/**
 * Makes a JSON writer that is fast for the same object many times in a row, such as the metadata of one step's events.
 */
export function repeatingJson(): (value: object) => string {
  let last: object | undefined;
  let text = '';
  return (value) => {
    if (value !== last) text = JSON.stringify(value);
    last = value;
    return text;
  };
}
