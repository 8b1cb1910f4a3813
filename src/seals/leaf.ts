import { type RecordedEvent, Unreadable } from '../event-store/recorded-event.ts';
import { type Hash, leafHash } from './merkle-tree.ts';

/**
 * The types of an engine's own events, such as the mark of an erased stream, begin with this. Other engines lack them.
 */
const ENGINE_TYPES = '$';
const HEAD_BYTES = 16 * 1024;
/** A buffer that is reused for each event. It grows with the largest one. */
let entry = Buffer.alloc(HEAD_BYTES);

export function isLeaf({ type }: RecordedEvent): boolean {
  return !type.startsWith(ENGINE_TYPES);
}

/**
 * Returns the hash of an unparsed event as a leaf of the log's tree. The hashed entry is stream, revision, id, type,
 * data and metadata as they are stored, each as a netstring. The time is the one in the metadata, since the engine's
 * own time differs in each copy. The hash reveals nothing about an erased event, since the random id is erased with it.
 */
export function hashOf(event: RecordedEvent): Hash {
  const { stream, revision, id, type } = event;
  const head = netstring(stream) + netstring(String(revision)) + netstring(id) + netstring(type);
  const [data, metadata] = [bytesOf(event.data), bytesOf(event.metadata)];
  const maxBytes = 3 * head.length + data.length + metadata.length + HEAD_BYTES;
  if (entry.length < maxBytes) entry = Buffer.alloc(maxBytes);
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

/** Returns the stored bytes, or the reason why there are none. */
function bytesOf(part: unknown): Uint8Array {
  if (part instanceof Uint8Array) return part;
  if (part instanceof Unreadable) return Buffer.from(part.reason);
  throw new TypeError('an event is hashed as it is stored: read it unparsed');
}
