import { type RecordedEvent, Unreadable } from '../event-store/recorded-event.ts';
import { type Hash, leafHash } from './merkle-tree.ts';

/** Events of the engine's own, such as the mark of an erased stream: another engine does not have them. */
const OF_ENGINE = '$';
const HEAD_BYTES = 16 * 1024;
/** Used again for each event; it grows with the largest. */
let entry = Buffer.alloc(HEAD_BYTES);

/** Where an event stands in every store that has it. */
export type Place = Pick<RecordedEvent, 'stream' | 'revision'>;

export function isLeaf({ type }: RecordedEvent): boolean {
  return !type.startsWith(OF_ENGINE);
}

/**
 * The hash of an unparsed event as a leaf of the log's tree. Its entry is stream, revision, id, type, data and metadata as they
 * are stored, each as a netstring. The metadata says when it happened; an engine's own time differs from copy to copy. Nothing
 * can be computed from the hash, since the id is random, and is erased with the event.
 */
export function hashOf(event: RecordedEvent): Hash {
  const { stream, revision, id, type } = event;
  const head = netstring(stream) + netstring(String(revision)) + netstring(id) + netstring(type);
  const [data, metadata] = [bytesOf(event.data), bytesOf(event.metadata)];
  const most = 3 * head.length + data.length + metadata.length + HEAD_BYTES;
  if (entry.length < most) entry = Buffer.alloc(most);
  let end = 1 + entry.write(head, 1);
  for (const part of [data, metadata]) {
    end += entry.write(`${part.length}:`, end);
    entry.set(part, end);
    end += part.length;
    end += entry.write(',', end);
  }
  return leafHash(entry.subarray(0, end));
}

function netstring(text: string): string {
  return `${Buffer.byteLength(text)}:${text},`;
}

/** The stored bytes; of what has none, why. */
function bytesOf(part: unknown): Uint8Array {
  if (part instanceof Uint8Array) return part;
  if (part instanceof Unreadable) return Buffer.from(part.reason);
  throw new TypeError('an event is hashed as it is stored: read it unparsed');
}
