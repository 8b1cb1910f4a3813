import { JsonText } from '../event-store/new-event.ts';
import { type RecordedEvent, Unreadable } from '../event-store/recorded-event.ts';
import { type Hash, leafHash } from './merkle-tree.ts';

/** Events of the engine's own, such as the mark of an erased stream: another engine does not have them. */
const OF_ENGINE = '$';

/** Where an event stands in every store that has it. */
export type Place = Pick<RecordedEvent, 'stream' | 'revision'>;

export function isLeaf({ type }: RecordedEvent): boolean {
  return !type.startsWith(OF_ENGINE);
}

/**
 * The entry of an unparsed event in the log's tree: stream, revision, id, type, data and metadata as they are stored, each
 * as a netstring. The metadata says when it happened; an engine's own time differs from copy to copy. Nothing can be
 * computed from its hash, since the id is random, and is erased with the event.
 */
export function entryOf({ stream, revision, id, type, data, metadata }: RecordedEvent): string {
  const head = netstring(stream) + netstring(String(revision)) + netstring(id) + netstring(type);
  return head + netstring(textOf(data)) + netstring(textOf(metadata));
}

function netstring(text: string): string {
  return `${Buffer.byteLength(text)}:${text},`;
}

export function hashOf(event: RecordedEvent): Hash {
  return leafHash(entryOf(event));
}

/** The stored text; of what is none, why. */
function textOf(part: unknown): string {
  if (part instanceof JsonText) return part.text;
  if (part instanceof Unreadable) return part.reason;
  throw new TypeError('an event is hashed as it is stored: read it unparsed');
}
