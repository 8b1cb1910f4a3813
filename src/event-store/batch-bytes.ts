import type { RecordedEvent } from './recorded-event.ts';

/**
 * A batch is full once its events reach this, as `jsonBytes` counts them: it has one event at least, whatever its
 * size. Several hundred usual events are less.
 */
export const MAX_BATCH_BYTES = 2 * 1024 * 1024;

const VALUE_BYTES = 8;
const CONTAINER_BYTES = 32;

/** About what an event takes in memory. */
export function eventBytes({ data, metadata }: Pick<RecordedEvent, 'data' | 'metadata'>): number {
  return jsonBytes(data) + jsonBytes(metadata);
}

/**
 * About what a JSON value takes in memory, which may be ten times its text. Without recursion, since a stored value
 * may nest to any depth.
 */
export function jsonBytes(value: unknown): number {
  let bytes = 0;
  const open: object[] = [];
  const count = (member: unknown): void => {
    bytes += VALUE_BYTES;
    if (typeof member === 'string' || member instanceof Uint8Array) bytes += member.length;
    else if (typeof member === 'object' && member !== null) open.push(member);
  };
  count(value);
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    bytes += CONTAINER_BYTES;
    if (Array.isArray(next)) for (const member of next) count(member);
    else {
      for (const name in next) {
        bytes += name.length;
        count((next as Readonly<Record<string, unknown>>)[name]);
      }
    }
  }
  return bytes;
}

/** Cuts items into batches of at most `most` items and about `MAX_BATCH_BYTES`. */
export function* batchesOf<T>(
  items: Iterable<T>,
  { most, bytesOf }: { readonly most: number; readonly bytesOf: (item: T) => number },
): Generator<T[], void> {
  let batch: T[] = [];
  let bytes = 0;
  for (const item of items) {
    batch.push(item);
    bytes += bytesOf(item);
    if (batch.length < most && bytes < MAX_BATCH_BYTES) continue;
    yield batch;
    batch = [];
    bytes = 0;
  }
  if (batch.length > 0) yield batch;
}
